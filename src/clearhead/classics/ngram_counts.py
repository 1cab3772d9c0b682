"""Count n-grams: how often each sequence of one, two, … tokens occurs in a text.

The text is read once or twice per order and may exceed memory; the counts must fit in memory, as must the model.
Documents are counted separately: the end token precedes and follows each, and no n-gram crosses it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clearhead.classics.ngram import UNKNOWN
from clearhead.classics.ngram_config import check_order
from clearhead.classics.tally import BYTES_PER_KEY, Tally
from clearhead.errors import UserError
from clearhead.files import disk_errors
from clearhead.text.tokens import Tokens

MEMORY = 2**28  # bytes
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """The n-grams of one order, by key (see `classics/ngram.py`), with their counts."""

    keys: IntArray
    counts: IntArray


@dataclass(frozen=True)
class NGramCounts:
    """The counts of each order; unigrams cover the whole vocabulary, seen or not."""

    n_vocab: int
    end_id: int
    unigrams: IntArray
    longer: tuple[Counted, ...]  # bigrams, trigrams, …
    spills: int = 0  # number of sorted runs written to disk because memory was full

    @property
    def order(self) -> int:
        return len(self.longer) + 1


class _Stream:
    """The ids of a text in blocks, preceded by an end token unless the text starts with one."""

    def __init__(self, tokens: Tokens, end_id: int, block: int) -> None:
        self.tokens, self.block = tokens, block
        self.lead = np.full(0 if len(tokens) and int(tokens[:1][0]) == end_id else 1, end_id)

    def __len__(self) -> int:
        return len(self.tokens) + len(self.lead)

    def __iter__(self) -> Iterator[tuple[int, IntArray]]:
        """The start of each block, and its ids."""
        if len(self.lead):
            yield 0, self.lead
        for start in range(0, len(self.tokens), self.block):
            yield start + len(self.lead), self.tokens[start : start + self.block]


def count_ngrams(
    tokens: Tokens,
    n_vocab: int,
    end_id: int,
    order: int,
    memory: int = MEMORY,
    folder: Path | None = None,
    report: Callable[[int, int], object] = lambda *_: None,
) -> NGramCounts:
    """Count all n-grams up to an order in about `memory` bytes, with temporary files in `folder`.

    `report(done, total)` is called after each order.
    """
    check_order(order)
    stream = _Stream(tokens, end_id, max(16, memory // (2 * BYTES_PER_KEY)))
    unigrams = np.zeros(n_vocab, np.int64)
    for _, ids in stream:
        if len(ids) and (int(ids.max()) >= n_vocab or int(ids.min()) < 0):
            raise UserError(f"id {int(ids.max())} does not exist: ids range from 0 to {n_vocab - 1}")
        unigrams += np.bincount(ids, minlength=n_vocab)
    unigrams[end_id] -= 1  # the first token has no context
    if not unigrams.any():
        raise UserError("the text has no tokens: provide more text")
    report(1, order)
    longer: list[Counted] = []
    place = Path(tempfile.gettempdir()) if folder is None else folder
    with (
        disk_errors(place, "the n-grams have not been counted"),
        tempfile.TemporaryDirectory(prefix="clearhead-", dir=folder) as temporary,
    ):
        # For each position, the index of the n-gram that ends there, for the order counted last.
        path = Path(temporary) / "nodes"
        nodes = np.memmap(path, np.int64, mode="w+", shape=len(stream)) if order > 1 else None
        tally = Tally(Path(temporary), memory // 2)
        for n in range(2, order + 1):
            assert nodes is not None
            if n == 2:
                for start, ids in stream:
                    nodes[start : start + len(ids)] = ids
            for _, keys, known in _keys(stream, nodes, n_vocab):
                tally.add(keys[known])
            counted = Counted(*tally.result())
            if n < order:
                _follow(stream, nodes, counted.keys, n_vocab, end_id)
            longer.append(counted)
            report(n, order)
        del nodes
    return NGramCounts(n_vocab, end_id, unigrams, tuple(longer), tally.spills)


def _keys(
    stream: _Stream, nodes: IntArray, n_vocab: int
) -> Iterator[tuple[slice, IntArray, NDArray[np.bool_]]]:
    """The key of the n-gram that ends at each position, and whether there is one. The caller may modify `nodes`."""
    last = np.full(1, UNKNOWN, np.int64)
    for start, ids in stream:
        where = slice(start, start + len(ids))
        here = np.array(nodes[where])
        before = np.concatenate([last, here[:-1]])
        last = here[-1:]
        yield where, before * n_vocab + ids, before != UNKNOWN


def _follow(stream: _Stream, nodes: IntArray, keys: IntArray, n_vocab: int, end_id: int) -> None:
    """Replace the node at each position with the index of the n-gram that ends there.

    Here, n is the order just counted. N-grams do not cross document boundaries.
    """
    for where, wanted, known in _keys(stream, nodes, n_vocab):
        continues = known & (wanted % n_vocab != end_id)
        nodes[where] = np.where(continues, find(keys, wanted), UNKNOWN)


def find(keys: IntArray, wanted: IntArray) -> IntArray:
    """The index of each query among the sorted keys.

    Queries are sorted first: in random order, nearly every lookup would miss the CPU cache.
    """
    order = np.argsort(wanted)
    found = np.empty(len(wanted), np.int64)
    found[order] = np.searchsorted(keys, wanted[order])
    return found
