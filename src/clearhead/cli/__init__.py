"""The command line: one file a command; the only room that prints or reads argv."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from clearhead import __version__
from clearhead.cli import demo, evaluate, generate, inspect, models, train
from clearhead.errors import UserError

INTERRUPTED = 130  # the exit code after Ctrl-C; typer returns it too

app = typer.Typer(
    name="clearhead",
    help="Train a transformer language model on your own text, run it, see every step of what it computes.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("generate")(generate.generate)
app.command("eval")(evaluate.evaluate)
app.command("inspect")(inspect.inspect)
app.command("models")(models.models)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"clearhead {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show it."),
) -> None:
    pass


def main() -> None:
    """Run a command. Exit code 0; 2 for the user's mistake, in one line; 1 for ours; 130 after Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="clearhead", standalone_mode=False)
        sys.stdout.flush()
        if result == INTERRUPTED:
            return _complain("stopped", INTERRUPTED)
        return int(result or 0)
    except UserError as error:
        return _complain(str(error), 2)
    except typer.TyperException as error:
        # The base class of every complaint about options and arguments.
        message = getattr(error, "format_message", error.__str__)()
        if message.startswith("Usage:"):
            print(message)
            return 0
        return _complain(f"{message.rstrip('.')}; see clearhead --help", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped", INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has left, which typer and rich make an exit of; Python would complain again
        # on closing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("CLEARHEAD_DEBUG"):
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return _complain(f"a mistake of ours, not yours: {what} (CLEARHEAD_DEBUG=1 shows where)", 1)


def _complain(message: str, code: int) -> int:
    print(f"clearhead: {' '.join(message.split())}", file=sys.stderr)
    return code
