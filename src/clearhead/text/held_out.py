"""Held-out text: the validation tokens of a run, to be recognized in a text that has changed since.

A held-out passage is recognized wherever about `PASSAGE` bytes of it appear unchanged, and a shorter document if it
appears whole or as the beginning of a longer one. A conversation is recognized by its text up to the end of
its first reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clearhead.text.tokens import IGNORED, Tokens

PASSAGE = 256  # bytes
LEAST_SPAN = 8  # tokens
SEARCHED = 2**20  # tokens at a time
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_SEED = 5
# What is appended to a text can change how its last word is tokenized.
_UNSURE = 8  # tokens


@dataclass(frozen=True)
class HeldOut:
    """The validation tokens, and what it takes to recognize them."""

    before: NDArray[np.int64]  # the tokens before them: a passage, or fewer if there are fewer
    validation: Tokens
    span: int  # tokens in a passage
    middle: int  # where the validation tokens began in the text

    @classmethod
    def of(cls, training: Tokens, validation: Tokens, bytes_per_token: float) -> HeldOut:
        span = max(LEAST_SPAN, round(PASSAGE / bytes_per_token))
        return cls(training[max(0, len(training) - span) :], validation, span, len(training))

    def remove_from(self, tokens: Tokens, end_id: int | None) -> Tokens:
        """These tokens without those that are held out."""
        left_out = np.zeros(len(tokens), bool)
        if self.validation.all_count:
            # If the text was only appended to, everything before `middle` was trained on.
            begin = self.middle + count if (count := self._matching(tokens)) else 0
            left_out[begin - count : begin] = True
            ends = np.concatenate(list(_positions(tokens, end_id)))
            self._mark_passages(tokens, end_id, begin, left_out)
            self._mark_short_documents(tokens, end_id, ends, begin, left_out)
            _mark_ends(ends, left_out)
        else:
            self._mark_conversations(tokens, left_out)
        edges = np.flatnonzero(np.diff(left_out, prepend=True, append=True))
        return tokens.keep([(int(a), int(b)) for a, b in edges.reshape(-1, 2)])

    def _matching(self, tokens: Tokens) -> int:
        """How many tokens from `middle` on match the held-out tokens; 0 unless almost all do."""
        held = self.validation[:]
        there = tokens[self.middle : self.middle + len(held)]
        same = held[: len(there)] == there
        count = len(same) if same.all() else int(same.argmin())
        return count if count >= max(1, len(held) - _UNSURE) else 0

    def _pieces(self, end_id: int | None) -> Iterator[tuple[int, int]]:
        """The held-out documents, or parts of documents, as spans of `before` and `validation` combined."""
        ids = np.concatenate((self.before, self.validation[:]))
        ends = [] if end_id is None else np.flatnonzero(ids == end_id).tolist()
        for first, last in pairwise([-1, *ends, len(ids)]):
            if last > max(first + 1, len(self.before)):
                yield first + 1, last

    def _mark_passages(
        self, tokens: Tokens, end_id: int | None, begin: int, left_out: NDArray[np.bool_]
    ) -> None:
        ids, span, first = np.concatenate((self.before, self.validation[:])), self.span, len(self.before)
        places = [
            np.arange(max(start, first - span + 1), stop - span + 1)
            for start, stop in self._pieces(end_id)
            if stop - start >= span
        ]
        if not places:
            return
        at = np.concatenate(places)
        known, skipped = hash_spans(ids, span)[at], np.maximum(0, first - at)
        order = np.lexsort((skipped, known))
        known, skipped = known[order], skipped[order]
        for start in range(begin, len(tokens) - span + 1, SEARCHED):
            stop = min(start + SEARCHED + span - 1, len(tokens))
            hashes = hash_spans(tokens[start:stop], span)
            nearest = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found = np.flatnonzero(known[nearest] == hashes)
            change = np.zeros(stop - start + 1, np.int64)
            np.add.at(change, found + skipped[nearest[found]], 1)
            np.add.at(change, found + span, -1)
            left_out[start:stop] |= change.cumsum()[:-1] > 0

    def _mark_short_documents(
        self,
        tokens: Tokens,
        end_id: int | None,
        ends: NDArray[np.int64],
        begin: int,
        left_out: NDArray[np.bool_],
    ) -> None:
        ids, first = np.concatenate((self.before, self.validation[:])), len(self.before)
        short = {
            ids[start:stop].tobytes(): max(0, first - start)
            for start, stop in self._pieces(end_id)
            if stop - start < self.span
        }
        if not short:
            return
        lengths = sorted({len(each) // ids.itemsize for each in short})
        for before, end in pairwise([-1, *ends.tolist(), len(tokens)]):
            start = before + 1
            if start < begin or end <= start:
                continue
            document = tokens[start : min(end, start + self.span)]
            for length in lengths:
                if length > len(document):
                    break
                if (skipped := short.get(document[:length].tobytes())) is not None:
                    left_out[start + skipped : start + length] = True

    def _mark_conversations(self, tokens: Tokens, left_out: NDArray[np.bool_]) -> None:
        held = {_opening(self.validation, start, stop) for start, stop in self.validation.documents()}
        for start, stop in tokens.documents():
            left_out[start:stop] = _opening(tokens, start, stop) in held


def _opening(tokens: Tokens, start: int, stop: int) -> bytes:
    """A conversation up to the end of its first reply."""
    learned = tokens.targets[start:stop] != IGNORED
    if not learned.any():
        return tokens[start:stop].tobytes()
    first = int(learned.argmax())
    rest = ~learned[first:]
    last = first + int(rest.argmax()) if rest.any() else len(learned)
    # The end of a reply may be rendered differently if a message follows it.
    return tokens[start : start + max(first + 1, last - 1)].tobytes()


def _positions(tokens: Tokens, token: int | None) -> Iterator[NDArray[np.int64]]:
    yield np.empty(0, np.int64)
    for start in range(0, 0 if token is None else len(tokens), SEARCHED):
        yield start + np.flatnonzero(tokens[start : start + SEARCHED] == token)


def _mark_ends(ends: NDArray[np.int64], left_out: NDArray[np.bool_]) -> None:
    """Leave out the end token of each document that is left out as a whole."""
    total = np.concatenate(([0], left_out.cumsum()))
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    lengths = ends - starts
    left_out[ends[(lengths > 0) & (total[ends] - total[starts] == lengths)]] = True


def hash_spans(ids: NDArray[np.int64], span: int) -> NDArray[np.uint64]:
    """A hash of each `span` consecutive tokens: a polynomial modulo 2^64."""
    if len(ids) < span:
        return np.empty(0, np.uint64)
    values = np.random.default_rng(_SEED).integers(2**64, size=int(ids.max()) + 1, dtype=np.uint64)[ids]
    powers, inverses = (_powers(base, len(ids)) for base in (_BASE, pow(_BASE, -1, 2**64)))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values * powers, dtype=np.uint64)))
    hashes: NDArray[np.uint64] = (sums[span:] - sums[:-span]) * inverses[: len(ids) - span + 1]
    return hashes


def _powers(base: int, count: int) -> NDArray[np.uint64]:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
