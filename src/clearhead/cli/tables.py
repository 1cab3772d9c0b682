"""Tables in the terminal: plain rows, a head's attention in shades, and numbers in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from clearhead.cli.console import in_one_line, out, printable
from clearhead.summary_table import TableCell, show_cell, text_table

if TYPE_CHECKING:
    from torch import Tensor

SHARE = 4  # column width of a weight in percent
WEIGHT = 7  # width of a weight with five decimals
NUMBER = 9  # column width of any other number
TO_THE_LEFT = ("model", "family", "kind", "license", "name", "title", "run", "state", "text", "tokenizer")


def print_table(headings: dict[str, str], rows: list[dict[str, Any]]) -> None:
    """One line per row, text aligned left and numbers right."""
    lines = [list(headings.values()), *([_cell(name, row[name]) for name in headings] for row in rows)]
    sides = ["<" if name in TO_THE_LEFT else ">" for name in headings]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, sides, widths, strict=True)
        out.print("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip())


def emphasized_table(
    headings: Sequence[str], rows: Sequence[Sequence[TableCell]], best: Sequence[int | None]
) -> Text:
    """A `text_table` in which the best cell of each row, given by its column, is bold."""
    lines = text_table(headings, rows).split("\n")
    columns = zip(headings, *([show_cell(cell) for cell in row] for row in rows), strict=True)
    widths = [max(map(len, column)) for column in columns]
    found = [Text(line) for line in lines]
    for line, column in zip(found[1:], best, strict=True):
        if column is not None:
            start = sum(widths[:column]) + 2 * column
            line.stylize("bold", start, start + widths[column])
    return Text("\n").join(found)


def attention_table(
    tokens: Sequence[str], weights: Tensor, rows: range | None = None, columns: range | None = None
) -> Text:
    """A row for each query token, a column for each key token: weights in percent, darker for larger ones.

    `rows` and `columns` are the positions of the weights; default: all.
    """
    rows, columns = rows or range(len(tokens)), columns or range(len(tokens))
    text = _header(tokens, rows, columns, SHARE)
    for row, line in zip(rows, weights.tolist(), strict=True):
        text.append(_name(tokens, rows, row))
        for column, weight in zip(columns, line, strict=True):
            seen = weight > 0 or column <= row
            text.append(f"{100 * weight:{SHARE}.0f}" if seen else "·".rjust(SHARE), style=_shade(weight))
    return text


def number_table(tokens: Sequence[str], values: Tensor, rows: range, columns: range) -> Text:
    """A row for each position, a column for each feature or position."""
    text = _header(tokens, rows, columns, NUMBER) if len(columns) > 1 else Text()
    for row, line in zip(rows, values.tolist(), strict=True):
        text.append(_name(tokens, rows, row))
        text.append("".join(_number(number) for number in line))
    return text


def weight_table(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> Text:
    """A table of weights from 0 to 1, with five decimals, as in the lectures; larger weights are darker."""
    side = max(map(len, rows))
    widths = [max(WEIGHT, len(column)) for column in columns]
    names = "".join(f"  {name:>{width}}" for name, width in zip(columns, widths, strict=True))
    text = Text(" " * side)
    text.append(names, style="dim")
    for row, line in zip(rows, values, strict=True):
        text.append(f"\n{row:<{side}}")
        for weight, width in zip(line, widths, strict=True):
            text.append("  ")
            text.append(f"{weight:>{width}.5f}", style=_shade(weight))
    return text


def columns_that_fit(tokens: Sequence[str], rows: range, width: int, cell: int) -> int:
    """The number of columns that fit beside the row names in a terminal of this width."""
    return max(1, (width - len(_name(tokens, rows, rows.start)) + 1) // cell)


def show_token(token: str) -> str:
    """Make spaces, line breaks and control characters visible, so that tokens can be told apart."""
    return printable(token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥").replace("\xa0", "⍽"))


def _cell(name: str, value: object) -> str:
    if name == "bytes" and isinstance(value, int):
        return f"{value / 1e6:,.1f}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else in_one_line(str(value or ""))


def _header(tokens: Sequence[str], rows: range, columns: range, cell: int) -> Text:
    text = Text(" " * (len(_name(tokens, rows, rows.start)) - 1))
    text.append("".join(f"{column:>{cell}}" for column in columns), style="dim")
    return text


def _name(tokens: Sequence[str], rows: range, row: int) -> str:
    """A row's number and token on a new line, padded to the widest."""
    digits = max(2, len(str(rows.stop - 1)))
    width = max(len(show_token(tokens[each])) for each in rows)
    return f"\n{row:>{digits}} {show_token(tokens[row]):<{width}}"


def _number(number: float) -> str:
    plain = f"{number:{NUMBER}.3f}"
    return plain if len(plain) <= NUMBER and plain[0] == " " else f"{number:{NUMBER}.1e}"


def _shade(weight: float) -> str:
    """A shade from white to purple, the color of attention; small weights are dimmed instead."""
    if weight < 0.05:
        return "dim"
    red, green, blue = (round(255 + (end - 255) * min(1.0, weight)) for end in (88, 28, 135))
    ink = "white" if weight > 0.45 else "black"
    return f"{ink} on rgb({red},{green},{blue})"
