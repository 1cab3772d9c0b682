"""Small tables that describe an object: text for its `repr`, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

TableCell = str | int | float | None  # numbers are aligned right


def text_table(headings: Sequence[str], rows: Sequence[Sequence[TableCell]]) -> str:
    """Aligned columns under their headings, without headings if there are none."""
    lines = [*([headings] if headings else []), *([show_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [_is_number_column(column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if numeric else f"{cell:<{width}}"
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def html_table(headings: Sequence[str], rows: Sequence[Sequence[TableCell]], caption: str = "") -> str:
    """A table with everything in it escaped. Without headings, the first cell of a row is its heading."""
    lines = ["<table>"]
    if caption:
        lines.append(f'<caption style="text-align: left">{escape(caption)}</caption>')
    if headings:
        cells = "".join(f'<th style="text-align: left">{escape(name)}</th>' for name in headings)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    body = "".join(f"<tr>{_html_row(row, not headings)}</tr>" for row in rows)
    return "".join([*lines, f"<tbody>{body}</tbody></table>"])


def plural(count: int, noun: str) -> str:
    """Format a count: 1 block, 2 blocks."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def show_cell(cell: TableCell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _is_number_column(cells: Sequence[TableCell]) -> bool:
    return all(isinstance(cell, int | float) or not cell for cell in cells)


def _html_row(row: Sequence[TableCell], named: bool) -> str:
    cells = []
    for i, cell in enumerate(row):
        tag = "th" if named and i == 0 else "td"
        side = "right" if not named and isinstance(cell, int | float) else "left"
        cells.append(f'<{tag} style="text-align: {side}">{escape(show_cell(cell))}</{tag}>')
    return "".join(cells)
