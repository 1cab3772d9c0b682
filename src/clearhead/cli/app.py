"""The commands."""

from __future__ import annotations

from collections.abc import Callable

import typer

from clearhead.cli import (
    chat,
    classroom,
    demo,
    doctor,
    evaluate,
    explore,
    export,
    fill,
    generate,
    inspect,
    lab,
    learn,
    lecture,
    models,
    publish,
    pull,
    race,
    report,
    runs,
    score,
    serve,
    slurm,
    train,
    words,
)
from clearhead.cli.command import Command
from clearhead.version import __version__

app = typer.Typer(
    name="clearhead",
    help="Train a transformer language model on your own text, run it, and see every step of what it computes.",
    epilog="New here? Run clearhead demo. To check this machine and the installation: clearhead doctor. "
    "A clearhead.toml in the working folder overrides the default values of options.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "train": train.train,
    "generate": generate.generate,
    "chat": chat.chat,
    "fill": fill.fill,
    "explore": explore.explore,
    "inspect": inspect.inspect,
    "learn": learn.learn,
    "eval": evaluate.evaluate,
    "score": score.score,
    "report": report.report,
    "race": race.race,
    "words": words.words,
    "lecture": lecture.lecture,
    "serve": serve.serve,
    "export": export.export,
    "publish": publish.publish,
    "pull": pull.pull,
    "models": models.models,
    "runs": runs.runs,
    "slurm": slurm.slurm,
    "doctor": doctor.doctor,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, cls=Command)(_command)
app.add_typer(lab.app, name="lab")
app.add_typer(classroom.app, name="class")


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
