"""Counting n-grams: how often each sequence of words is in a text, of one word, of two, and so on.

The text is read once or twice for each order and may be larger than memory; what is counted must fit, as
the model made of it must. Documents are counted one by one: the end token stands before the first word of
each and after its last, and nothing reaches across it.
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
from clearhead.classics.tally import BYTES_A_KEY, Tally
from clearhead.errors import UserError
from clearhead.files import disk_errors
from clearhead.text.tokens import Tokens

MEMORY = 2**28  # bytes
Array = NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """The n-grams of one order, by their keys (see `model/ngram.py`), and how often each was seen."""

    keys: Array
    counts: Array


@dataclass(frozen=True)
class NGramCounts:
    """What a text has of each order: of single words all of the vocabulary, seen or not."""

    n_vocab: int
    end_id: int
    words: Array
    longer: tuple[Counted, ...]  # pairs, triples, …
    spills: int = 0  # how often memory was full and a run was put on disk

    @property
    def order(self) -> int:
        return len(self.longer) + 1


class _Stream:
    """The ids of a text in blocks; an end token goes before them, where there is none."""

    def __init__(self, tokens: Tokens, end_id: int, block: int) -> None:
        self.tokens, self.block = tokens, block
        self.lead = np.full(0 if len(tokens) and int(tokens[:1][0]) == end_id else 1, end_id)

    def __len__(self) -> int:
        return len(self.tokens) + len(self.lead)

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        """Where each block begins, and its ids."""
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
    """Count all n-grams up to an order, in about so many bytes of memory and a temporary folder in `folder`.

    `report` is told of each order that is done, of how many.
    """
    check_order(order)
    stream = _Stream(tokens, end_id, max(16, memory // (2 * BYTES_A_KEY)))
    words = np.zeros(n_vocab, np.int64)
    for _, ids in stream:
        if len(ids) and (int(ids.max()) >= n_vocab or int(ids.min()) < 0):
            raise UserError(f"id {int(ids.max())} does not exist: there are ids 0 to {n_vocab - 1}")
        words += np.bincount(ids, minlength=n_vocab)
    words[end_id] -= 1  # the first one comes after nothing
    if not words.any():
        raise UserError("the text has no words, expected some; give more text")
    report(1, order)
    longer: list[Counted] = []
    place = Path(tempfile.gettempdir()) if folder is None else folder
    with (
        disk_errors(place, "the n-grams were not counted"),
        tempfile.TemporaryDirectory(prefix="clearhead-", dir=folder) as temporary,
    ):
        # For each position the node of the words up to it, as many as the order counted last.
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
    return NGramCounts(n_vocab, end_id, words, tuple(longer), tally.spills)


def _keys(stream: _Stream, nodes: Array, n_vocab: int) -> Iterator[tuple[slice, Array, NDArray[np.bool_]]]:
    """The n-gram that ends at each position, by its key, and whether there is one. Nodes may change."""
    last = np.full(1, UNKNOWN, np.int64)
    for start, ids in stream:
        where = slice(start, start + len(ids))
        here = np.array(nodes[where])
        before = np.concatenate([last, here[:-1]])
        last = here[-1:]
        yield where, before * n_vocab + ids, before != UNKNOWN


def _follow(stream: _Stream, nodes: Array, keys: Array, n_vocab: int, end_id: int) -> None:
    """The nodes of the order that was counted just now. After the end of a document none goes on."""
    for where, wanted, known in _keys(stream, nodes, n_vocab):
        goes_on = known & (wanted % n_vocab != end_id)
        nodes[where] = np.where(goes_on, find(keys, wanted), UNKNOWN)


def find(keys: Array, wanted: Array) -> Array:
    """Where each lies among the keys, which ascend.

    Asked for in ascending order: in any other, nearly every step through so many keys waits for memory.
    """
    order = np.argsort(wanted)
    found = np.empty(len(wanted), np.int64)
    found[order] = np.searchsorted(keys, wanted[order])
    return found
