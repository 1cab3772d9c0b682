"""A table of static word vectors: one vector per word, regardless of the sentence.

Shapes: V words, D features per vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clearhead.errors import UserError, guess

Vector = NDArray[np.float32]

MOST_GUESSED = 20_000  # words searched for a suggestion


@dataclass(frozen=True, eq=False, repr=False)
class WordTable:
    """Words and their vectors, the most frequent word first."""

    words: Sequence[str]
    vectors: NDArray[np.float32]  # V D

    def __post_init__(self) -> None:
        assert self.vectors.ndim == 2, self.vectors.shape
        assert len(self.words) == len(self.vectors), (len(self.words), self.vectors.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} words, width {self.width})"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> Vector:
        """The vector of a word: D."""
        return self.vectors[self._place(word)]

    @property
    def width(self) -> int:
        """Features per vector."""
        return self.vectors.shape[1]

    def cosine(self, one: str, other: str) -> float:
        """The cosine similarity of two words, from -1 to 1."""
        return float(self._units[self._place(one)] @ self._units[self._place(other)])

    def nearest(self, to: str | ArrayLike, count: int = 10) -> list[tuple[str, float]]:
        """The words most similar to a word (itself excluded) or to a vector, with their cosines."""
        if isinstance(to, str):
            place = self._place(to)
            return self._nearest(self._units[place], [place], count)
        vector = np.asarray(to, np.float32)
        if vector.shape != (self.width,) or not np.isfinite(vector).all():
            raise UserError(
                f"a vector of shape {vector.shape}: expected a word, or {self.width} finite numbers"
            )
        return self._nearest(_unit(vector), [], count)

    def analogy(self, one: str, minus: str, plus: str, count: int = 10) -> list[tuple[str, float]]:
        """The words nearest to `one - minus + plus`, except these three: `analogy("king", "man", "woman")`."""
        given = [self._place(word) for word in (one, minus, plus)]
        a, b, c = self._units[given]
        return self._nearest(_unit(a - b + c), given, count)

    def _nearest(self, unit: Vector, without: list[int], count: int) -> list[tuple[str, float]]:
        if type(count) is not int or count < 1:
            raise UserError(f"count = {count!r}: expected an integer of at least 1")
        cosines = self._units @ unit
        cosines[without] = -np.inf
        count = min(count, len(cosines) - len(set(without)))
        if count < 1:
            return []
        best = np.argpartition(-cosines, count - 1)[:count]
        best = best[np.argsort(-cosines[best], kind="stable")]
        return [(self.words[i], float(cosines[i])) for i in best]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def _units(self) -> NDArray[np.float32]:
        return _unit(self.vectors)

    def _place(self, word: str) -> int:
        if not isinstance(word, str):
            raise UserError(f"word {word!r}: expected a word, as a str")
        place = self._places.get(word)
        if place is None:
            raise UserError(f"{word!r} is not among the {len(self):,} words{self._guess(word)}")
        return place

    def _guess(self, word: str) -> str:
        if word.lower() in self:
            return f"; did you mean {word.lower()!r}?"
        alike = (known for known in self.words if abs(len(known) - len(word)) <= 2)
        return guess(word, islice(alike, MOST_GUESSED))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors, scaled to norm 1; zero vectors remain zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(length == 0, 1, length)).astype(np.float32, copy=False)
