"""`clearhead lab`: the lectures' experiments, one command each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, Signature
from itertools import count
from time import monotonic
from typing import Any

import typer

from clearhead.cli.command import Command
from clearhead.cli.console import clock, err, out, plural
from clearhead.cli.options import CSV, FIGURE, JSON
from clearhead.cli.progress import live_line
from clearhead.cli.results import check_output, finding_lines, give, part_lines
from clearhead.labs.catalog import LABS
from clearhead.labs.lab import Lab, Lines, Result, Setting, Watch

app = typer.Typer(
    help="The lectures' experiments. Each prints its numbers and a question, and can save a figure.\n\n"
    "\b\nFor example:\n  clearhead lab attention\n  clearhead lab any-one --figure any-one.svg",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _make_command(lab: Lab) -> Callable[..., None]:
    """A command with an option for each setting of the lab."""

    def command(json: bool, csv: bool, figure: str | None, model: str | None = None, **settings: Any) -> None:
        from clearhead.labs.catalog import lab as run
        from clearhead.language_model import load

        check_output(figure, json, csv)
        lab.check(settings)
        inspected = None if model is None else load(model)
        if model is not None and lab.model not in (None, model):
            err.print(f"this lab was designed for {lab.model}: clearhead lab {lab.name} --model {lab.model}")
        with _watching(lab) as watch:
            result = run(lab.name, inspected, watch, **settings)
        give(result, figure, json, csv, partial(_show, lab))

    parameters = [_option(setting) for setting in lab.settings]
    if lab.model is not None:
        description = f"The model to inspect: a folder, a file, or a name. [default: {lab.model}]"
        parameters.append(_parameter("model", typer.Option(None, metavar="MODEL", help=description), str))
    parameters += [
        _parameter("figure", FIGURE, str),
        _parameter("json", JSON, bool),
        _parameter("csv", CSV, bool),
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    title = lab.title if lab.title.endswith("?") else f"{lab.title}."
    examples = f"clearhead lab {lab.name}\n  clearhead lab {lab.name} --json"
    command.__doc__ = f"{title}\n\n{lab.description}\n\n\b\nFor example:\n  {examples}"
    return command


@contextmanager
def _watching(lab: Lab) -> Iterator[Watch | None]:
    """Show the progress of a lab that trains, if stderr is a terminal."""
    if not lab.long:
        yield None
        return
    err.print(f"training for {lab.name}; this takes a while …")
    began, steps = monotonic(), count(1)
    with live_line() as show:
        yield lambda: show(f"{plural(next(steps), 'step')}   {clock(monotonic() - began)}", False)


def _option(setting: Setting) -> Parameter:
    flag = "--" + setting.name.replace("_", "-")
    description = f"{setting.description[0].upper()}{setting.description[1:]}"
    if setting.allowed:
        description += f"; {setting.allowed}"
    if isinstance(setting.default, bool):
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    return _parameter(
        setting.name, typer.Option(setting.default, flag, help=f"{description}."), type(setting.default)
    )


def _parameter(name: str, option: Any, kind: type) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)


def _show(lab: Lab, result: Result) -> None:
    out.print(f"{lab.title}\n\n{lab.description}\n")
    for part in result.parts:
        unit = f" ({part.up})" if isinstance(part, Lines) and part.up != part.name else ""
        out.print(f"{part.name}{unit}")
        for line in part_lines(part):
            out.print(f"  {line}")
        out.print("")
    for line in finding_lines(result):
        out.print(line)
    out.print(f"\n{lab.question}")


for _lab in LABS.values():
    app.command(_lab.name, cls=Command)(_make_command(_lab))
