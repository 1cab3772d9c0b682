"""Test items for language models: several texts, one of which should be the most probable.

An item is a pair of sentences, a multiple-choice question, or a cloze. A row of a JSONL or CSV file is one item; its
fields decide its kind:

- pair: `good` and `bad` (or `sentence_good` and `sentence_bad`), and optionally the `context` before both
- choice: `context`, `choices` (or `choice_0`, `choice_1`, …) and `answer`, the index of a choice or its text; a string
  that is the index of one choice and the text of another is rejected
- cloze: `context` and `target`, the word or words that follow it
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clearhead.errors import UserError

ItemKind = Literal["pair", "choice", "cloze"]
KINDS: tuple[ItemKind, ...] = ("pair", "choice", "cloze")
CATEGORY = "category"  # the field that names an item's category, by default
DELIMITER = " "  # between a context and what follows it
EXPECTED = "expected good and bad, or context, choices and answer, or context and target"
_PAIRS = (("good", "bad"), ("sentence_good", "sentence_bad"))
_CHOICE = re.compile(r"choice_(\d{1,4})")


@dataclass(frozen=True)
class EvaluationItem:
    """A context, and the texts that may follow it; `answer` is the index of the right one. A cloze has only one."""

    kind: ItemKind
    context: str
    options: tuple[str, ...]
    answer: int = 0
    category: str = ""
    place: str = ""  # the file and line that it was read from

    @property
    def chance(self) -> float | None:
        """The probability of guessing right; None for a cloze, whose answer could be any text."""
        return None if self.kind == "cloze" else 1 / len(self.options)

    def to_row(self) -> dict[str, Any]:
        """The fields of a row that `item_of` reads as this item."""
        row: dict[str, Any] = {"category": self.category} if self.category else {}
        if self.context or self.kind != "pair":
            row["context"] = self.context
        if self.kind == "pair":
            return {**row, "good": self.options[0], "bad": self.options[1]}
        if self.kind == "cloze":
            return {**row, "target": self.options[0]}
        return {**row, "choices": list(self.options), "answer": self.answer}


def item_of(row: Mapping[str, Any], category: str = CATEGORY, place: str = "") -> EvaluationItem:
    """The item in a row, whose fields determine its kind. Other fields are ignored."""
    named = row.get(category)
    if named is not None and not isinstance(named, str | int):
        raise UserError(f"{category} is {_show(named)}: expected a string")
    label = "" if named is None else str(named)
    for good, bad in _PAIRS:
        if row.get(good) is not None and row.get(bad) is not None:
            options = (_text(row, good), _text(row, bad))
            if options[0] == options[1]:
                raise UserError(f"{good} and {bad} are the same text: expected two that differ")
            return EvaluationItem("pair", _context(row, needed=False), options, 0, label, place)
    choices = _choices(row)
    if choices is not None and row.get("answer") is not None:
        answer = _answer(row["answer"], choices)
        return EvaluationItem("choice", _context(row), choices, answer, label, place)
    if row.get("target") is not None:
        return EvaluationItem("cloze", _context(row), (_text(row, "target"),), 0, label, place)
    fields = ", ".join(map(str, row)) or "none"
    raise UserError(f"its fields are {fields}: {EXPECTED}")


def _context(row: Mapping[str, Any], needed: bool = True) -> str:
    """The context, which may be empty."""
    context = row.get("context")
    if context is None and not needed:
        return ""
    if not isinstance(context, str):
        given = "there is no context" if context is None else f"context is {_show(context)}"
        raise UserError(f"{given}: expected a string, which may be empty")
    return context


def _text(row: Mapping[str, Any], name: str) -> str:
    text = row[name]
    if not isinstance(text, str) or not text:
        raise UserError(f"{name} is {_show(text)}: expected a non-empty string")
    return text


def _choices(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The choices, from one field or from numbered fields, the last of which may be empty."""
    given = row.get("choices")
    if given is None:
        numbered = {int(found[1]): row[name] for name in row if (found := _CHOICE.fullmatch(str(name)))}
        given = [numbered[number] for number in sorted(numbered) if numbered[number] not in (None, "")]
        if not numbered:
            return None
    if isinstance(given, str):  # a cell of a CSV file
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise UserError(
                f"choices is {_show(given)}: expected a JSON list of strings, or the columns choice_0, choice_1, …"
            ) from None
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise UserError(f"choices is {_show(given)}: expected a list of non-empty strings")
    if len(given) < 2:
        count = "is only one choice" if given else "are no choices"
        raise UserError(f"there {count}: expected at least 2")
    return tuple(given)


def _answer(given: object, choices: Sequence[str]) -> int:
    """The index of the right choice, given as such or as its text. A number is always an index."""
    found = [i for i, each in enumerate(choices) if each == given]
    digits = isinstance(given, str) and given.isdecimal() and len(given) < 9
    if (type(given) is int or digits) and 0 <= (index := int(str(given))) < len(choices):
        if found and choices[index] != given:
            raise UserError(
                f"answer is {_show(given)}, the text of choice {found[0]} and the index of another: write the index "
                f"as a JSON number, {found[0]} or {index}, in a .jsonl file"
            )
        found = found or [index]
    if not found:
        raise UserError(
            f"answer is {_show(given)}: expected a number from 0 to {len(choices) - 1}, or the text of a choice"
        )
    if choices.count(choices[found[0]]) > 1:
        raise UserError(f"the choice {_show(choices[found[0]])} is the answer and occurs twice: remove one")
    return found[0]


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
