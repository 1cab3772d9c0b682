"""What an n-gram model is made of: how far it looks back, and how many sequences of words it knows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from clearhead.errors import UserError
from clearhead.model.config import check_names

MOST_ORDER = 32
MOST_NGRAMS = 2**40  # of one order: times a vocabulary, that is still a whole number of 64 bits
MOST_VOCAB = 2**22
WINDOW = 256  # words
MOST_LOGITS = 2**25  # numbers that are made at once where a whole text is read


@dataclass(frozen=True)
class NGramConfig:
    """The shape of an n-gram model."""

    n_vocab: int
    end_id: int  # ends every document; before its first word it says that it begins
    counts: tuple[int, ...]  # how many pairs, triples, … of words it knows; words it knows all
    n_context: int = WINDOW  # words of a text that are read at once; each sees `order` - 1 of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts) if _is_row(self.counts) else self.counts)
        limits = {"n_vocab": (1, MOST_VOCAB), "end_id": (0, MOST_VOCAB - 1), "n_context": (1, 2**20)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise UserError(f"{name} = {value!r}: expected a whole number from {least} to {most}")
        if self.end_id >= self.n_vocab:
            raise UserError(f"end_id = {self.end_id}: expected one of the {self.n_vocab} words, from 0 on")
        if not _is_row(self.counts) or any(type(n) is not int or n < 0 for n in self.counts):
            raise UserError(f"counts = {self.counts!r}: expected how many n-grams there are, of each order")
        if len(self.counts) >= MOST_ORDER or any(n > MOST_NGRAMS for n in self.counts):
            raise UserError(
                f"counts = {self.counts!r}: expected orders up to {MOST_ORDER}, of {MOST_NGRAMS} n-grams"
            )

    @property
    def kind(self) -> Literal["ngram"]:
        return "ngram"

    @property
    def order(self) -> int:
        """How many words are counted together: those seen, and the one after them."""
        return len(self.counts) + 1

    @property
    def causal(self) -> bool:
        """Its past is all that it ever sees."""
        return True

    @property
    def n_row(self) -> int:
        """Windows that are read at once: a vocabulary may have a million words."""
        return max(1, MOST_LOGITS // (self.n_context * self.n_vocab))

    @property
    def n_ngram(self) -> int:
        return self.n_vocab + sum(self.counts)

    @property
    def n_parameter(self) -> int:
        """A probability for each n-gram, and for all but the longest what is left for shorter ones."""
        return 2 * self.n_ngram - (self.counts[-1] if self.counts else self.n_vocab)

    @property
    def n_byte(self) -> int:
        """What it takes in memory and on disk: those, and what each n-gram is known by."""
        return 4 * self.n_parameter + 8 * sum(self.counts)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self), "counts": list(self.counts)}

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> NGramConfig:
        """The config that `to_json` wrote. A setting it does not know, or lacks, is refused by name."""
        given = {name: value for name, value in settings.items() if name != "kind"}
        check_names(given, cls)
        return cls(**given)


def _is_row(value: object) -> bool:
    return isinstance(value, list | tuple)


def check_order(order: object) -> int:
    """The order, if it is one."""
    if type(order) is not int or not 1 <= order <= MOST_ORDER:
        raise UserError(f"order = {order!r}: expected a whole number from 1 to {MOST_ORDER}, such as 5")
    return order
