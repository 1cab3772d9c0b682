"""Output of a lab, race or lecture: saved as a figure, and printed as JSON, CSV or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clearhead.cli.console import print_json, print_text
from clearhead.errors import UserError
from clearhead.labs.lab import Lines, ResultPart, Table, Value, format_value

if TYPE_CHECKING:
    from clearhead.labs.lab import Result

MOST_ROWS = 40  # of a table in the terminal
MOST_COLUMNS = 12


def check_output(figure: str | None, json: bool, csv: bool) -> None:
    """Before any work starts, reject JSON together with CSV, or a figure with an unsupported suffix."""
    if json and csv:
        raise UserError("--json and --csv are mutually exclusive: give only one")
    if figure is not None:
        from clearhead.picture import check_place

        check_place(figure)


def give(result: Result, figure: str | None, json: bool, csv: bool, show: Callable[[Result], object]) -> None:
    """Output a result; `show` prints it as text, unless JSON or CSV is requested."""
    if figure is not None:
        from clearhead.figures.figure import figure as draw

        draw(result).save(figure)
    if json:
        print_json(result.to_dict())
    elif csv:
        print_text(result.to_csv())
    else:
        show(result)


def part_lines(part: ResultPart) -> list[str]:
    """Format a `Table`, `Lines` or `Points` as lines of text."""
    return _lines(*_as_table(part))


def finding_lines(result: Result) -> list[str]:
    width = max(map(len, result.findings), default=0)
    return [f"{name:<{width}}  {format_value(value)}" for name, value in result.findings.items()]


def _as_table(part: ResultPart) -> tuple[list[str], list[str], list[list[Value]]]:
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
    """A table as lines of text. The middle of a long or wide one is left out."""
    across, down = _ends(len(columns), MOST_COLUMNS), _ends(len(rows), MOST_ROWS)
    head = ["…" if k is None else columns[k] for k in across]
    cells = {
        i: ["…" if k is None else format_value(values[i][k]) for k in across] for i in down if i is not None
    }
    side = max((len(rows[i]) for i in cells), default=0)
    widths = [max(len(name), *(len(line[k]) for line in cells.values())) for k, name in enumerate(head)]
    lines = [_row("", side, head, widths)]
    for i in down:
        if i is None:
            lines.append(f"… {len(rows) - len(cells)} more rows: --csv prints all")
        else:
            lines.append(_row(rows[i], side, cells[i], widths))
    if None in across:
        lines.append(f"… {len(columns) - len(across) + 1} more columns: --csv prints all")
    return lines


def _ends(count: int, most: int) -> list[int | None]:
    """Up to `most` indices, half of them from each end, with None for what is left out between them."""
    if count <= most:
        return [*range(count)]
    return [*range(most // 2), None, *range(count - most // 2, count)]


def _row(name: str, side: int, cells: list[str], widths: list[int]) -> str:
    return f"{name:<{side}}" + "".join(f"  {cell:>{wide}}" for cell, wide in zip(cells, widths, strict=True))
