"""The commands, together."""

from __future__ import annotations

import typer

from clearhead import __version__
from clearhead.cli import (
    chat,
    demo,
    evaluate,
    explore,
    export,
    fill,
    generate,
    inspect,
    lab,
    models,
    publish,
    pull,
    race,
    runs,
    serve,
    train,
    words,
)

app = typer.Typer(
    name="clearhead",
    help="Train a transformer language model on your own text, run it, see every step of what it computes.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("race")(race.race)
app.command("generate")(generate.generate)
app.command("chat")(chat.chat)
app.command("explore")(explore.explore)
app.command("serve")(serve.serve)
app.command("fill")(fill.fill)
app.command("inspect")(inspect.inspect)
app.command("eval")(evaluate.evaluate)
app.command("pull")(pull.pull)
app.command("export")(export.export)
app.command("publish")(publish.publish)
app.command("models")(models.models)
app.command("runs")(runs.runs)
app.command("words")(words.words)
app.add_typer(lab.app, name="lab")


def _show_version(asked: bool) -> None:
    if asked:
        print(f"clearhead {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass
