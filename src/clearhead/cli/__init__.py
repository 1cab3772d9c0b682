"""The command line: one file per command; the only package that prints or reads argv."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from clearhead.cli.signals import TERMINATING, interrupt
from clearhead.errors import OwnError, UserError, guess
from clearhead.processes import limit_spinning, shield

INTERRUPTED = 130  # exit code after Ctrl-C; typer returns it too


def main() -> None:
    """Run a command and exit with 0, with 2 after a user error (reported on one line), with 1 after an internal error,
    or with 130 after Ctrl-C.
    """
    shield()
    limit_spinning()
    try:
        for number in TERMINATING:
            signal.signal(number, interrupt)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # shells ignore it in background jobs
            signal.signal(signal.SIGINT, interrupt)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # an ASCII terminal shows ? for é
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = _complain("stopped", INTERRUPTED)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    import typer

    from clearhead.cli.completion import check_shell

    try:
        command = _make_command()
        check_shell(arguments)
        result = command.main(
            arguments,
            prog_name="clearhead",
            standalone_mode=False,
            default_map=_read_defaults(command, arguments),
        )
        sys.stdout.flush()
        if result == INTERRUPTED:
            return _complain("stopped", INTERRUPTED)
        return int(result or 0)
    except UserError as error:
        # With several processes, rank 0 reports errors that all of them raise.
        silent = os.environ.get("RANK", "0") != "0" and not isinstance(error, OwnError)
        _keep(error)
        return 2 if silent else _complain(str(error), 2)
    except typer.TyperException as error:
        # The base class of all errors about options and arguments.
        message = getattr(error, "format_message", error.__str__)()
        if message.startswith("Usage:"):
            from clearhead.cli.console import printable

            print(printable(message))
            return 0
        return _complain(_reword(error, message), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped", INTERRUPTED)
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:  # shell completion has exited
            sys.stdout.flush()
        else:  # the reader of our output has closed the pipe; typer and rich turn that into an exit
            _forget_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _forget_output()
            return _complain("no space left for the output: free some space, or redirect it elsewhere", 2)
        if os.environ.get("CLEARHEAD_DEBUG"):
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return _complain(f"internal error: {what} (set CLEARHEAD_DEBUG=1 for the traceback)", 1)


@cache
def _make_command() -> Any:
    """All commands and their options; typer takes a while to build them from the functions' signatures."""
    import typer

    from clearhead.cli.app import app

    return typer.main.get_command(app)


def _read_defaults(command: Any, arguments: list[str]) -> dict[str, Any]:
    """The defaults in clearhead.toml. Its errors are ignored for --help and doctor, which must work regardless."""
    from clearhead.cli import config

    path = None if os.environ.get("_CLEARHEAD_COMPLETE") else config.find()
    if path is None:
        return {}
    try:
        return config.read(path, command)
    except UserError:
        if not arguments or arguments[0] == "doctor" or {"-h", "--help", "--version"} & {*arguments}:
            return {}
        raise


def _reword(error: Any, message: str) -> str:
    """What is wrong with the arguments, a suggestion, and the command whose help explains more."""
    from clearhead.cli import config

    context = getattr(error, "ctx", None)
    see = f"{context.command_path if context else 'clearhead'} --help"
    option = getattr(error, "param", None)
    if wrong := getattr(error.__cause__, "errors", None):  # pydantic's
        message = f"{config.flag(option)} {wrong()[0]['input']}: expected {config.expected(option)}"
    if possible := getattr(error, "possibilities", None):
        # Compared without the dashes, which all options share.
        meant = guess(error.option_name.lstrip("-"), [each.removeprefix("--") for each in possible])
        message = error.message + meant.replace("mean '", "mean '--")
    message = message.replace(". Did you mean", "; did you mean").rstrip(".")
    return f"{message} See {see}" if message.endswith("?") else f"{message}; see {see}"


def _forget_output() -> None:
    """Redirect stdout to the null device: Python would raise the error again when closing stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _keep(error: UserError) -> None:
    """Write the error to the file that the server named; the page shows it in the user's language."""
    if (path := os.environ.get("CLEARHEAD_ERROR_FILE")) and error.code is not None:
        with suppress(OSError):
            Path(path).write_text(json.dumps({"code": error.code, "values": error.values}))


def _complain(message: str, code: int) -> int:
    from clearhead.cli.console import printable

    print(f"clearhead: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code
