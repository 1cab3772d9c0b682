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
from clearhead.cli.results import check_figure, give
from clearhead.labs.catalog import LABS
from clearhead.labs.lab import Lab, Lines, Points, Result, Setting, Table, Value, Watch

MOST_ROWS = 40  # of a table on the screen
MOST_COLUMNS = 12

app = typer.Typer(
    help="The lectures' experiments. Each prints its numbers, draws a figure and asks a question.\n\n"
    "\b\nFor example:\n  clearhead lab attention\n  clearhead lab any-one --figure any-one.svg",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _make_command(lab: Lab) -> Callable[..., None]:
    """A command with an option for each setting of the lab."""

    def command(json: bool, csv: bool, figure: str | None, model: str | None = None, **settings: Any) -> None:
        from clearhead.labs.catalog import lab as run

        check_figure(figure)
        with _watching(lab) as watch:
            result = run(lab.name, model, watch, **settings)
        give(result, figure, json, csv, partial(_show, lab))

    parameters = [_option(setting) for setting in lab.settings]
    if lab.model is not None:
        description = f"The model to inspect: a folder, file or pulled name. [default: {lab.model}]"
        parameters.append(_parameter("model", typer.Option(None, help=description), str))
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
    """Progress of a lab that trains, on a terminal."""
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
        out.print(part.name)
        for line in _lines(*_as_table(part)):
            out.print(f"  {line}")
        out.print("")
    width = max(map(len, result.findings), default=0)
    for name, value in result.findings.items():
        out.print(f"{name:<{width}}  {_told(value)}")
    out.print(f"\n{lab.question}")


def _as_table(part: Table | Lines | Points) -> tuple[list[str], list[str], list[list[Value]]]:
    if isinstance(part, Table):
        return part.rows, part.columns, part.values
    if isinstance(part, Lines):
        columns = list(part.lines)
        rows = [f"{part.across} = {x:g}" for x in part.x]
        return rows, columns, [[part.lines[name][i] for name in columns] for i in range(len(rows))]
    return (
        part.labels,
        ["x", "y", "group"],
        [[*place, group] for place, group in zip(part.places, part.groups, strict=True)],
    )


def _lines(rows: list[str], columns: list[str], values: list[list[Value]]) -> list[str]:
    columns = columns[:MOST_COLUMNS]
    cells = [[_told(value) for value in line[: len(columns)]] for line in values[:MOST_ROWS]]
    side = max(map(len, rows), default=0)
    widths = [max(len(name), *(len(line[k]) for line in cells)) for k, name in enumerate(columns)]
    lines = [" " * side + "".join(f"  {name:>{wide}}" for name, wide in zip(columns, widths, strict=True))]
    for row, line in zip(rows, cells, strict=False):
        lines.append(
            f"{row:<{side}}" + "".join(f"  {cell:>{wide}}" for cell, wide in zip(line, widths, strict=True))
        )
    if len(values) > MOST_ROWS:
        lines.append(f"… {len(values) - MOST_ROWS} more rows: --csv has all")
    return lines


def _told(value: Value | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else str(value)


for _lab in LABS.values():
    app.command(_lab.name, cls=Command)(_make_command(_lab))
