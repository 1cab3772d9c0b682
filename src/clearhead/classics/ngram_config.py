"""The configuration of an n-gram model: its order and the number of n-grams it knows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from clearhead.errors import UserError
from clearhead.model.config import check_names

MOST_ORDER = 32
MOST_NGRAMS = 2**40  # per order; the product with the vocabulary size still fits in 64 bits
MOST_VOCAB = 2**22
WINDOW = 256  # tokens
MOST_LOGITS = 2**25  # logits computed at once when a whole text is processed


@dataclass(frozen=True)
class NGramConfig:
    """The shape of an n-gram model."""

    n_vocab: int
    end_id: int  # ends every document; as the context of the first token, it marks the start
    counts: tuple[int, ...]  # number of bigrams, trigrams, …; unigrams cover the vocabulary
    n_context: int = WINDOW  # tokens of a text processed at once; a prediction uses the last `order` - 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts) if _is_row(self.counts) else self.counts)
        limits = {"n_vocab": (1, MOST_VOCAB), "end_id": (0, MOST_VOCAB - 1), "n_context": (1, 2**20)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise UserError(f"{name} = {value!r}: expected an integer from {least} to {most}")
        if self.end_id >= self.n_vocab:
            raise UserError(f"end_id = {self.end_id}: expected an id from 0 to {self.n_vocab - 1}")
        if not _is_row(self.counts) or any(type(n) is not int or n < 0 for n in self.counts):
            raise UserError(f"counts = {self.counts!r}: expected the number of n-grams of each order")
        if len(self.counts) >= MOST_ORDER or any(n > MOST_NGRAMS for n in self.counts):
            raise UserError(
                f"counts = {self.counts!r}: expected at most {MOST_ORDER} orders of {MOST_NGRAMS} n-grams each"
            )

    @property
    def kind(self) -> Literal["ngram"]:
        return "ngram"

    @property
    def order(self) -> int:
        """The n in n-gram: the context length plus one."""
        return len(self.counts) + 1

    @property
    def causal(self) -> bool:
        """Always true."""
        return True

    @property
    def n_row(self) -> int:
        """Windows processed at once: fewer for a larger vocabulary, to limit memory."""
        return max(1, MOST_LOGITS // (self.n_context * self.n_vocab))

    @property
    def n_ngram(self) -> int:
        return self.n_vocab + sum(self.counts)

    @property
    def n_parameter(self) -> int:
        """A probability for each n-gram, and a backoff weight for all but the highest order."""
        return 2 * self.n_ngram - (self.counts[-1] if self.counts else self.n_vocab)

    @property
    def n_byte(self) -> int:
        """Bytes in memory and on disk: probabilities, backoff weights and keys."""
        return 4 * self.n_parameter + 8 * sum(self.counts)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self), "counts": list(self.counts)}

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> NGramConfig:
        """Read what `to_json` wrote. Raises an error that names any unknown or missing settings."""
        given = {name: value for name, value in settings.items() if name != "kind"}
        check_names(given, cls)
        return cls(**given)


def _is_row(value: object) -> bool:
    return isinstance(value, list | tuple)


def check_order(order: object) -> int:
    """Validate an order and return it."""
    if type(order) is not int or not 1 <= order <= MOST_ORDER:
        raise UserError(f"order = {order!r}: expected an integer from 1 to {MOST_ORDER}, such as 5")
    return order
