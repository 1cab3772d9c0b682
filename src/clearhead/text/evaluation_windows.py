"""Evaluation windows: each token of a text is a target once, and sees only its own document.

B is the number of rows in a batch, T the number of positions in a row (`n_context`).
"""

from collections.abc import Iterator
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clearhead.text.batches import Batch, Blanks, blank_generator
from clearhead.text.start_token import StartToken
from clearhead.text.tokens import IGNORED, Tokens

SEARCHED = 2**20  # tokens searched for document boundaries at a time

Row = tuple[NDArray[np.int64], NDArray[np.int64]]  # the inputs and targets of a part of a row


def windows_for_evaluation(
    tokens: Tokens,
    n_context: int,
    batch_size: int,
    before: int,
    blanks: Blanks | None = None,
    start: StartToken | None = None,
    stride: int | None = None,
) -> Iterator[Batch]:
    """Windows in which each token is a target once; `before` is the id that precedes the first.

    Windows start at the beginning of each document; several short documents share a row, but do not see each
    other, so each has the loss that it would have alone. `start` begins every window. Windows are disjoint unless
    `stride` is less than `n_context`: then each starts that many tokens after the previous one, and all but the first
    window of a document predict only their last `stride` tokens. With `blanks`, each token is in one window, and
    which tokens are masked depends only on the window's tokens.
    """
    assert start is None or n_context > 1, "a window of one position has no room for a start token"
    stride = n_context if stride is None else stride
    if not tokens.are_documents and start is None and stride == n_context:
        yield from _windows(tokens, n_context, batch_size, before, blanks)
        return
    rows = _Rows(n_context, batch_size)
    for inputs, targets in cut_windows(tokens, n_context, before, start, stride, blanks):
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


def cut_windows(
    tokens: Tokens,
    T: int,
    before: int,
    start: StartToken | None = None,
    stride: int | None = None,
    blanks: Blanks | None = None,
) -> Iterator[Row]:
    """The windows of each document, up to T tokens each, in the order of the text."""
    stride = T if stride is None else stride
    for first, last in pairwise(_edges(tokens)):
        length = T if start is None else T - 1
        opening = before if first == 0 else int(tokens[first - 1 : first][0])
        longest = T if start is None or start.is_opening(opening) else length
        for begin, counted, stop in _spans(first, last, longest, length, min(stride, length)):
            targets = tokens.targets[begin:stop]
            if blanks is not None:
                cut = _cut(blanks, targets)
                yield cut.inputs[0], cut.targets[0]
                continue
            targets[: counted - begin] = IGNORED
            ids = tokens[max(0, begin - 1) : stop - 1]
            inputs = ids if begin else np.concatenate(([before], ids))
            if start is not None:
                start.replace_ends(inputs, tokens)
                if inputs[0] != start.id:
                    inputs, targets = start.prepend(inputs, targets)
            yield inputs, targets


def _spans(first: int, last: int, longest: int, length: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """The windows of a document from `first` to `last`: where each begins, where its targets begin, and where it ends.

    The first window has up to `longest` tokens and all others up to `length`.
    """
    stop = min(first + longest, last)
    yield first, first, stop
    while stop < last:
        counted, stop = stop, min(stop + stride, last)
        yield counted + stride - length, counted, stop


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
    """Up to `batch_size` rows of T positions, into which parts are packed: each into the first row where it fits."""

    def __init__(self, T: int, batch_size: int) -> None:
        self.T, self.batch_size = T, batch_size
        self.parts: list[list[Row]] = []
        self.lengths: list[int] = []

    def add(self, inputs: NDArray[np.int64], targets: NDArray[np.int64]) -> bool:
        """Add a part to a row; return whether it fit."""
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
