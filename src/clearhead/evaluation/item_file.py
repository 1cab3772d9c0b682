"""Files of items: JSONL, CSV or TSV, one item per row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from clearhead.errors import UserError
from clearhead.evaluation.items import CATEGORY, EXPECTED, EvaluationItem, item_of
from clearhead.files import write_text
from clearhead.text.conversations import numbered_lines
from clearhead.text.converters import read_table
from clearhead.text.corpus import documents
from clearhead.text.sources import COLUMN_SUFFIXES, Source, find, show, suffix_of

LINES = (".jsonl", ".ndjson")


def read_items(
    files: Sequence[str | Path], category: str = CATEGORY, stdin: BinaryIO | None = None
) -> list[EvaluationItem]:
    """The items in all files, in order. `category` is the field that names an item's category; the file
    `-` is JSONL read from `stdin`.
    """
    items: list[EvaluationItem] = []
    named = False
    for source in find(files, stdin):
        count = len(items)
        for place, row in _rows(source):
            try:
                items.append(item_of(row, category, place))
            except UserError as error:
                raise UserError(f"{place}: {error}") from None
            named = named or category in row
        if len(items) == count:
            raise UserError(f"{show(source.name)} contains no items: {EXPECTED}")
    if category != CATEGORY and not named:
        raise UserError(f"category = {category!r}: no item has that field")
    return items


def write_items(path: Path, items: Iterable[EvaluationItem]) -> None:
    """Write items to a new JSONL file, which `read_items` reads."""
    if path.exists():
        raise UserError(f"{path} already exists: choose another name, or remove it")
    write_text(path, "".join(json.dumps(each.to_row(), ensure_ascii=False) + "\n" for each in items))


def _rows(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row, and where it is."""
    suffix = suffix_of(source.path)
    if suffix in COLUMN_SUFFIXES:
        for number, row in read_table(source)[1]:
            yield f"{show(source.name)}, line {number}", row
        return
    if suffix not in (*LINES, ""):
        expected = ", ".join((*LINES, *sorted(COLUMN_SUFFIXES)))
        raise UserError(f"{show(source.name)} has the suffix {suffix}: expected one of {expected}")
    [document] = documents([source.path])
    for place, line in numbered_lines(document, show(source.name)):
        yield place, _object(line, place)


def _object(line: str, place: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        if isinstance(row := json.loads(line), dict):
            return row
    raise UserError(f"{place}: this is not a JSON object; {EXPECTED}")
