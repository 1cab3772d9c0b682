"""Scores: how often a model considers the right one of several texts the most likely.

The log-probability of a text is that of its tokens after the context. Context and text are encoded together and split
after the number of tokens that the context has on its own, as in lm-evaluation-harness; spaces at the end of the
context belong to the text. Without a context, the text starts a document. Ties count as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

from clearhead.errors import UserError
from clearhead.evaluation.continuation import Continuation, context_limit, join
from clearhead.evaluation.interval import wilson
from clearhead.evaluation.item_file import read_items
from clearhead.evaluation.items import CATEGORY, DELIMITER, KINDS, EvaluationItem, ItemKind
from clearhead.evaluation.minimal_pairs import minimal_pairs
from clearhead.generate import scoring
from clearhead.generate.scoring import ScoredText
from clearhead.language_model import LanguageModel
from clearhead.networks import need_causal
from clearhead.summary_table import TableCell, html_table, plural, text_table

TIE = 1e-5  # nats; a smaller difference may be rounding
HEADINGS = ("kind", "category", "items", "accuracy", "95% interval", "per byte", "chance", "bits per byte")


@dataclass(frozen=True)
class ItemScore:
    """The log-probability of each option of an item, in nats, and how many tokens it has."""

    item: EvaluationItem
    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    greedy: bool  # whether each token of the right option is the most likely one
    truncated: bool  # whether the context was cut at its start to fit into the model's context

    @property
    def bytes(self) -> tuple[int, ...]:
        return tuple(len(option.encode()) for option in self.item.options)

    @property
    def correct(self) -> bool:
        """Whether the right option has the highest log-probability; for a cloze, whether the model would write it."""
        return self.greedy if self.item.kind == "cloze" else self._is_highest(self.log_probabilities)

    @property
    def correct_per_byte(self) -> bool:
        """The same for the log-probability per byte, which does not favor short options."""
        if self.item.kind == "cloze":
            return self.greedy
        return self._is_highest([p / n for p, n in zip(self.log_probabilities, self.bytes, strict=True)])

    def _is_highest(self, scores: Sequence[float]) -> bool:
        others = [score for i, score in enumerate(scores) if i != self.item.answer]
        return scores[self.item.answer] - max(others) > TIE

    def to_dict(self) -> dict[str, Any]:
        return {
            **({"place": self.item.place} if self.item.place else {}),
            "kind": self.item.kind,
            **self.item.to_row(),
            "log_probabilities": list(self.log_probabilities),
            "tokens": list(self.tokens),
            "bytes": list(self.bytes),
            "correct": self.correct,
            "correct_per_byte": self.correct_per_byte,
            "truncated": self.truncated,
        }


@dataclass(frozen=True)
class GroupScore:
    """The scores of all items of a kind, or of those in one category."""

    kind: ItemKind
    category: str | None  # None for all categories together
    scores: tuple[ItemScore, ...]

    @property
    def items(self) -> int:
        return len(self.scores)

    @property
    def accuracy(self) -> float:
        return fmean(each.correct for each in self.scores)

    @property
    def accuracy_per_byte(self) -> float:
        return fmean(each.correct_per_byte for each in self.scores)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson score interval for the accuracy."""
        return wilson(sum(each.correct for each in self.scores), self.items)

    @property
    def chance(self) -> float | None:
        """The expected accuracy of guessing; None for clozes."""
        chances = [chance for each in self.scores if (chance := each.item.chance) is not None]
        return fmean(chances) if chances else None

    @property
    def bits_per_byte(self) -> float:
        """The loss on the right options. Comparable across tokenizers."""
        nats = -math.fsum(each.log_probabilities[each.item.answer] for each in self.scores)
        return nats / math.log(2) / sum(each.bytes[each.item.answer] for each in self.scores)

    def to_dict(self) -> dict[str, Any]:
        names = (
            "kind",
            "category",
            "items",
            "accuracy",
            "interval",
            "accuracy_per_byte",
            "chance",
            "bits_per_byte",
        )
        return {name: getattr(self, name) for name in names}

    def row(self) -> tuple[TableCell, ...]:
        low, high = self.interval
        chance = "" if self.chance is None else f"{self.chance:.1%}"
        category = "all" if self.category is None else self.category
        return (
            *(self.kind, category, self.items, f"{self.accuracy:.1%}", f"{low:.1%} – {high:.1%}"),
            *(f"{self.accuracy_per_byte:.1%}", chance, f"{self.bits_per_byte:.3f}"),
        )


@dataclass(frozen=True)
class LeftOutItem:
    """An item that was not scored because one of its texts does not fit the model's context."""

    item: EvaluationItem
    tokens: int  # in its longest text
    limit: int  # the model's context

    def __str__(self) -> str:
        place = f"{self.item.place}: " if self.item.place else ""
        return f"{place}a text has {self.tokens:,} tokens; the model's context is {self.limit:,}"

    def to_dict(self) -> dict[str, Any]:
        place = {"place": self.item.place} if self.item.place else {}
        return {**place, "kind": self.item.kind, **self.item.to_row(), "tokens": self.tokens}


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of a model on items, in their order, without those that are left out."""

    model: str
    scores: tuple[ItemScore, ...]
    left_out: tuple[LeftOutItem, ...] = ()

    @property
    def groups(self) -> list[GroupScore]:
        """Each kind, followed by its categories if it has several."""
        found = []
        for kind in KINDS:
            own = [each for each in self.scores if each.item.kind == kind]
            categories = list(dict.fromkeys(each.item.category for each in own))
            if own:
                found.append(GroupScore(kind, None, tuple(own)))
            if len(categories) > 1:
                for name in categories:
                    alike = tuple(each for each in own if each.item.category == name)
                    found.append(GroupScore(kind, name, alike))
        return found

    @property
    def truncated(self) -> int:
        """The number of items whose context was truncated."""
        return sum(each.truncated for each in self.scores)

    @property
    def note(self) -> str:
        """A line on the items that are left out; empty if there are none."""
        if not self.left_out:
            return ""
        first = "" if len(self.left_out) == 1 else "first, "
        total = plural(len(self.left_out) + len(self.scores), "item")
        return f"{len(self.left_out):,} of {total} left out as too long: {first}{self.left_out[0]}"

    def __repr__(self) -> str:
        return f"Scores of {self.model}\n{self.table()}"

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return html_table(HEADINGS, self.rows(), f"Scores of {self.model}") + note

    def table(self) -> str:
        """The table as text, and a line on the items that are left out."""
        return "\n".join(filter(None, (text_table(HEADINGS, self.rows()), self.note)))

    def rows(self) -> list[tuple[TableCell, ...]]:
        return [group.row() for group in self.groups]

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "groups": [group.to_dict() for group in self.groups],
            "truncated": self.truncated,
            "left_out": [each.to_dict() for each in self.left_out],
            "items": [score.to_dict() for score in self.scores],
        }


def score(
    model: LanguageModel,
    items: str | Path | Sequence[str | Path] | Sequence[EvaluationItem] | None = None,
    *,
    category: str = CATEGORY,
    delimiter: str = DELIMITER,
    report: Callable[[int, int], object] = lambda *_: None,
) -> Scores:
    """Score a model on sentence pairs, multiple-choice questions and clozes: `score(model, "pairs.jsonl")`.

    The items are in JSONL or CSV files, whose field `category` names an item's category; without any, they are the
    minimal pairs from the story grammar, except those that the model cannot read. `delimiter` separates a context from
    what follows, unless either has a space there. Items with a text that is longer than the model's context are left
    out. `report(done, total)` receives the number of texts.
    """
    need_causal(model.config)
    if items is None:
        items = readable_items(model, minimal_pairs(), delimiter)
    given = [items] if isinstance(items, str | Path) else list(items)
    listed = [each for each in given if isinstance(each, EvaluationItem)]
    if len(listed) < len(given):
        listed = read_items([each for each in given if not isinstance(each, EvaluationItem)], category)
    if not listed:
        raise UserError("there are no items to score: name a file, or pass items")
    kept, whole, left_out = [], [], []
    for item in listed:
        texts = _encode(model, item, delimiter)
        if (too_long := _find_too_long(model, item, texts)) is None:
            kept.append(item)
            whole.append(texts)
        else:
            left_out.append(too_long)
    if not kept:
        first = "" if len(listed) == 1 else f"none of the {len(listed):,} items fits: first, "
        raise UserError(f"{first}{left_out[0]}")
    limit = context_limit(model.config)
    cut = [[each.cut(limit) for each in texts] for texts in whole]
    flat = [each for texts in cut for each in texts]
    scored = iter(
        scoring.score(model.network, [each.ids for each in flat], [each.start for each in flat], 2, report)
    )
    return Scores(
        model.name,
        tuple(
            _gather(item, [next(scored) for _ in texts], texts, truncated=texts != before)
            for item, texts, before in zip(kept, cut, whole, strict=True)
        ),
        tuple(left_out),
    )


def readable_items(
    model: LanguageModel, items: Sequence[EvaluationItem], delimiter: str = DELIMITER
) -> list[EvaluationItem]:
    """The items that the model's tokenizer can encode and whose texts fit its context; an error if there are none."""
    found, first = [], None
    for item in items:
        try:
            texts = _encode(model, item, delimiter)
        except UserError as error:
            first = first or error
            continue
        if (too_long := _find_too_long(model, item, texts)) is None:
            found.append(item)
        else:
            first = first or UserError(str(too_long))
    if not found and first is not None:
        raise first
    return found


def _encode(model: LanguageModel, item: EvaluationItem, delimiter: str) -> list[Continuation]:
    """Each option after the context."""
    try:
        return [
            Continuation.encode(
                model.tokenizer, item.context, join(item.context, option, delimiter), model.config.n_vocab
            )
            for option in item.options
        ]
    except UserError as error:
        raise UserError(f"{item.place}: {error}" if item.place else str(error)) from None


def _find_too_long(
    model: LanguageModel, item: EvaluationItem, texts: Sequence[Continuation]
) -> LeftOutItem | None:
    """The item, if one of its texts does not fit the model's context."""
    longest, limit = max(each.length for each in texts), context_limit(model.config)
    return None if limit is None or longest <= limit else LeftOutItem(item, longest, limit)


def _gather(
    item: EvaluationItem, scored: Sequence[ScoredText], texts: Sequence[Continuation], truncated: bool
) -> ItemScore:
    return ItemScore(
        item,
        tuple(each.log_probability for each in scored),
        tuple(each.length for each in texts),
        _is_greedy(scored[item.answer]),
        truncated,
    )


def _is_greedy(text: ScoredText) -> bool:
    """Whether each token is more likely than any other."""
    for token in text.tokens:
        if token.log_probability is not None:
            first, *others = token.alternatives
            if first[0] != token.id or (others and first[1] - others[0][1] <= TIE):
                return False
    return True
