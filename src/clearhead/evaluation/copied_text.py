"""Copied text: how much of a text occurs, token for token, in the text that a model was trained on.

A run is a sequence of tokens that occurs in both. Spans of the text are looked up in the training tokens by their
hashes, and each one found is compared token by token, so the result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clearhead.text.held_out import hash_spans
from clearhead.text.tokens import Tokens

RUN = 50  # bytes; shorter runs are common phrases
LEAST_RUN = 5  # tokens
SEARCHED = 2**20  # training tokens at a time

TokenIds = NDArray[np.int64]


@dataclass(frozen=True)
class CopiedText:
    """How many tokens of the texts are inside runs of at least `n` tokens, and where the longest run is."""

    n: int
    tokens: int  # in the texts
    copied: int
    longest: int  # tokens in the longest run, which may have fewer than `n`; 0 if there is none
    text: int | None  # the index of the text with the longest run
    start: int | None  # where it begins in that text

    @property
    def share(self) -> float:
        return self.copied / self.tokens if self.tokens else 0.0


def run_length(bytes_per_token: float) -> int:
    """The minimum number of tokens in a run: about as many as there are in `RUN` bytes."""
    return max(LEAST_RUN, round(RUN / bytes_per_token))


def find_copies(texts: Sequence[Sequence[int] | TokenIds], training: Tokens, n: int) -> CopiedText:
    """Find runs of at least `n` tokens of the texts that also occur in the training tokens, and the longest run."""
    arrays: list[TokenIds] = [np.asarray(text, np.int64) for text in texts]
    tokens, starts = sum(map(len, arrays)), _find(arrays, training, n)
    copied = sum(_covered(len(array), own, n) for array, own in zip(arrays, starts, strict=True))
    # A part of a run is a run, so the length of the longest can be found by bisection.
    low, high = (n, max(map(len, arrays))) if copied else (0, min(n - 1, max(map(len, arrays), default=0)))
    place = _first(starts)
    while low < high:
        middle = (low + high + 1) // 2
        if (longer := _first(_find(arrays, training, middle))) is None:
            high = middle - 1
        else:
            low, place = middle, longer
    return CopiedText(n, tokens, copied, low, *(place or (None, None)))


def _covered(length: int, starts: TokenIds, n: int) -> int:
    """The number of tokens inside spans of `n` tokens with these starts."""
    change = np.zeros(length + 1, np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, starts + n, -1)
    return int((change.cumsum() > 0).sum())


def _first(starts: Sequence[TokenIds]) -> tuple[int, int] | None:
    """The first text with a span, and the start of its first span."""
    return next(((i, int(own[0])) for i, own in enumerate(starts) if len(own)), None)


def _find(texts: Sequence[TokenIds], training: Tokens, n: int) -> list[TokenIds]:
    """For each text, the starts of its spans of `n` tokens that occur in the training tokens, in order."""
    hashes = np.concatenate([np.empty(0, np.uint64), *(hash_spans(text, n) for text in texts)])
    places = [(i, at) for i, text in enumerate(texts) for at in range(len(text) - n + 1)]
    missing = hashes.argsort(kind="stable")  # the spans not found yet, in the order of their hashes
    found: list[list[int]] = [[] for _ in texts]
    for start in range(0, len(training) - n + 1, SEARCHED):
        if not len(missing):
            break
        ids = training[start : start + SEARCHED + n - 1]
        there, known = hash_spans(ids, n), hashes[missing]
        alike = np.searchsorted(known, there)
        at = np.flatnonzero(known[np.minimum(alike, len(known) - 1)] == there)
        if not len(at):
            continue
        at = at[there[at].argsort(kind="stable")]
        firsts = np.flatnonzero(np.diff(there[at], prepend=there[at[:1]] + np.uint64(1)))
        left = np.ones(len(missing), bool)
        for group in np.split(at, firsts[1:]):  # the spans of the training tokens with the same hash
            row = int(alike[group[0]])
            while row < len(known) and known[row] == there[group[0]]:
                i, begin = places[missing[row]]
                span = texts[i][begin : begin + n]
                if any((span == ids[each : each + n]).all() for each in group):
                    found[i].append(begin)
                    left[row] = False
                row += 1
        missing = missing[left]
    return [np.array(sorted(each), np.int64) for each in found]
