"""Evaluation windows: each token of a text is a target once, and sees only its own document.

B is the number of rows in a batch, T the number of positions in a row (`n_context`).
"""

from collections.abc import Iterator
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clearhead.text.batches import Batch, Blanks, blank_generator
from clearhead.text.tokens import IGNORED, Tokens

SEARCHED = 2**20  # tokens searched for document boundaries at a time

Row = tuple[NDArray[np.int64], NDArray[np.int64]]  # the inputs and targets of a part of a row


def windows_for_evaluation(
    tokens: Tokens,
    n_context: int,
    batch_size: int,
    before: int,
    blanks: Blanks | None = None,
    start_id: int | None = None,
) -> Iterator[Batch]:
    """Disjoint windows in which each token is a target once; `before` is the id that precedes the first.

    Windows start at the beginning of each document; several short documents share a row, but do not see each
    other, so each has the loss that it would have alone. `start_id` precedes each document but the first; by
    default, the token before it in the text does. With `blanks`, each token is in one window, and which tokens are
    masked depends only on the window's tokens.
    """
    if not tokens.are_documents:
        yield from _windows(tokens, n_context, batch_size, before, blanks)
        return
    rows = _Rows(n_context, batch_size)
    for inputs, targets in _chunks(tokens, n_context, before, blanks, start_id):
        if not (targets != IGNORED).any():
            continue
        if not rows.add(inputs, targets):
            yield rows.batch()
            rows = _Rows(n_context, batch_size)
            rows.add(inputs, targets)
    if rows.parts:
        yield rows.batch()


def _windows(tokens: Tokens, T: int, batch_size: int, before: int, blanks: Blanks | None) -> Iterator[Batch]:
    """The windows of one document; what remains after the last full window is a batch of one shorter row."""
    whole = len(tokens) // T * T
    edges = [*range(0, whole, batch_size * T), whole]
    if whole < len(tokens):
        edges.append(len(tokens))
    for start, stop in pairwise(edges):
        ids, targets = tokens[start:stop], tokens.targets[start:stop]
        inputs = np.concatenate(([before], ids[:-1]))
        before = int(ids[-1])
        shape = (-1, min(T, stop - start))
        if blanks is None:
            yield Batch(inputs.reshape(shape), targets.reshape(shape))
        else:
            cut = [_cut(blanks, row) for row in targets.reshape(shape)]
            yield Batch(
                np.concatenate([one.inputs for one in cut]), np.concatenate([one.targets for one in cut])
            )


def _chunks(
    tokens: Tokens, T: int, before: int, blanks: Blanks | None, start_id: int | None
) -> Iterator[Row]:
    """The windows of each document, up to T tokens each."""
    for first, last in pairwise(_edges(tokens)):
        for start in range(first, last, T):
            stop = min(start + T, last)
            targets = tokens.targets[start:stop]
            if blanks is not None:
                cut = _cut(blanks, targets)
                yield cut.inputs[0], cut.targets[0]
                continue
            ids = tokens[max(0, start - 1) : stop - 1]
            inputs = ids if start else np.concatenate(([before], ids))
            if start == first > 0 and start_id is not None:
                inputs[0] = start_id
            yield inputs, targets


def _cut(blanks: Blanks, window: NDArray[np.int64]) -> Batch:
    """A row with masked tokens."""
    return blanks.cut(window[None], blank_generator(0, crc32(window.tobytes())))


def _edges(tokens: Tokens) -> Iterator[int]:
    """The index of each document's first target (its input starts the document), and the number of tokens."""
    yield 0
    for start in range(0, len(tokens) - 1, SEARCHED):
        stop = min(start + SEARCHED, len(tokens) - 1)
        yield from (start + 1 + tokens.document_starts(start, stop).nonzero()[0]).tolist()
    yield len(tokens)


class _Rows:
    """Up to `batch_size` rows of T positions, into which parts are packed: each into the first row with room."""

    def __init__(self, T: int, batch_size: int) -> None:
        self.T, self.batch_size = T, batch_size
        self.parts: list[list[Row]] = []
        self.lengths: list[int] = []

    def add(self, inputs: NDArray[np.int64], targets: NDArray[np.int64]) -> bool:
        """Add a part to a row; return whether there was room."""
        fitting = (row for row, length in enumerate(self.lengths) if length + len(targets) <= self.T)
        row = next(fitting, len(self.parts))
        if row == self.batch_size:
            return False
        if row == len(self.parts):
            self.parts.append([])
            self.lengths.append(0)
        self.parts[row].append((inputs, targets))
        self.lengths[row] += len(targets)
        return True

    def batch(self) -> Batch:
        """The rows, padded to the longest. Padding counts as one more document, without targets."""
        shape = (len(self.parts), max(self.lengths))
        inputs, documents = np.zeros((2, *shape), np.int64)
        targets = np.full(shape, IGNORED, np.int64)
        for row, parts in enumerate(self.parts):
            at = 0
            for number, (ids, wanted) in enumerate(parts):
                here = slice(at, at + len(ids))
                inputs[row, here], targets[row, here], documents[row, here] = ids, wanted, number
                at += len(ids)
            documents[row, at:] = len(parts)
        return Batch(inputs, targets, documents if documents.any() else None)
