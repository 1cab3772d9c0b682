"""The parts of a report's page: tables, figures and texts. All text from models and users is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from clearhead.summary_table import TableCell, show_cell

# Control characters, which HTML does not allow, are shown as escapes.
ESCAPED = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in b"\n\t"}
ESCAPED[ord("\r")] = r"\r"
ROLES = ("model-0", "model-1", "model-2", "model-3")  # of the models that are compared
OTHER = "other"  # of what they are compared with


def passage(text: str) -> str:
    """Escape a text, and show more than two line breaks in a row as symbols, to save space."""
    text = text.replace("\r\n", "\n")
    return plain(re.sub(r"\n{3,}", lambda found: "⏎" * (len(found[0]) - 1) + "\n", text))


def plain(text: str) -> str:
    """Escape a text, and show its line breaks (including those of Windows) as breaks."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    return escape(text.translate(ESCAPED))


def inline(text: str) -> str:
    """Escape a text as a single line, with symbols for line breaks and tabs."""
    return plain(text.replace("\r\n", "\n").replace("\n", "⏎").replace("\t", "⇥"))


def table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[TableCell]],
    best: Sequence[int | None] = (),
) -> str:
    """A table in which the first cell of a row is its heading. `best` is the column to emphasize in each row."""
    columns = list(zip(*rows, strict=True)) or [() for _ in headings]
    numeric = [
        bool(column) and all(isinstance(cell, int | float) or _is_figure(cell) for cell in column)
        for column in columns
    ]
    head = "".join(
        f'<th scope="col"{_number(i > 0 and right)}>{inline(name)}</th>'
        for i, (name, right) in enumerate(zip(headings, numeric, strict=True))
    )
    body = []
    for number, (first, *cells) in enumerate(rows):
        line = f'<th scope="row">{inline(show_cell(first))}</th>'
        for i, cell in enumerate(cells, start=1):
            emphasized = number < len(best) and best[number] == i
            line += f"<td{_number(numeric[i], emphasized)}>{inline(show_cell(cell))}</td>"
        body.append(f"<tr>{line}</tr>")
    return _scrolling(caption, f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>")


def raw_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are HTML."""
    head = "".join(f'<th scope="col">{inline(name)}</th>' for name in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return _scrolling(caption, f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def figure(
    heading: str, about: str, picture: str, numbers: str, models: Sequence[tuple[str, str]] = ()
) -> str:
    """A picture with its numbers as a table, which opens below. `models` are names and roles for the legend."""
    return (
        f"<figure><figcaption><h3>{inline(heading)}</h3><p>{inline(about)}</p></figcaption>"
        f"{legend(models)}{picture}<details><summary>Numbers</summary>{numbers}</details></figure>"
    )


def legend(names: Sequence[tuple[str, str]]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(f'<li class="{role}"><i></i><span>{inline(name)}</span></li>' for name, role in names)
    return f'<ul class="legend">{items}</ul>'


def section(heading: str, content: str) -> str:
    return f"<section><h2>{inline(heading)}</h2>{content}</section>" if content else ""


def paragraph(text: str, role: str = "") -> str:
    return f"<p{_class(role)}>{inline(text)}</p>"


def _scrolling(caption: str, content: str) -> str:
    """A table that scrolls sideways where it does not fit."""
    said = inline(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{said}" tabindex="0">'
        f"<table><caption>{said}</caption>{content}</table></div>"
    )


def _is_figure(cell: TableCell) -> bool:
    """Whether a cell is empty, or begins with a number, such as 12.5%."""
    return cell is None or (isinstance(cell, str) and (not cell or cell[0].isdigit()))


def _number(right: bool, emphasized: bool = False) -> str:
    return _class(" ".join(name for name, on in (("number", right), ("best", emphasized)) if on))


def _class(role: str) -> str:
    return f' class="{role}"' if role else ""
