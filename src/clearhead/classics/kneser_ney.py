"""Modified Kneser-Ney: counts of n-grams to probabilities, interpolated over all orders.

A word that was seen after few others is no likely word after a new one, however often it was seen: so
shorter n-grams are counted by how many different words they came after. From each count something is taken
off, and goes to what shorter contexts say (Chen and Goodman 1999, in the words of Heafield et al. 2013):

    p(w | context) = (a - D(a)) / total(context) + b(context) p(w | context without its first word)

where a is the adjusted count of the n-gram, and b is what was taken off. Below single words all are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_config import NGramConfig
from clearhead.classics.ngram_counts import Array, NGramCounts, find

Floats = NDArray[np.float64]
Discounts = tuple[float, float, float]  # from counts of 1, of 2, and of 3 or more
FALLBACK: Discounts = (0.5, 1.0, 1.5)  # where a text is too small to tell
BLOCK = 2**20  # n-grams that are looked up at a time


def discounts(adjusted: Array) -> Discounts:
    """What to take off, by how many n-grams of an order there are with counts of 1, 2, 3 and 4."""
    t1, t2, t3, t4 = (int((adjusted == count).sum()) for count in (1, 2, 3, 4))
    if not (t1 and t2 and t3 and t4):
        return FALLBACK
    y = t1 / (t1 + 2 * t2)
    found = (1 - 2 * y * t2 / t1, 2 - 3 * y * t3 / t2, 3 - 4 * y * t4 / t3)
    return found if all(0 < each < count for count, each in enumerate(found, 1)) else FALLBACK


@dataclass(frozen=True)
class _Adjusted:
    """The n-grams of an order as they are counted here, and where each is without its first word."""

    keys: Array
    counts: Array
    shorter: Array


def estimate(counts: NGramCounts) -> NGram:
    """The n-gram model of these counts."""
    config = NGramConfig(counts.n_vocab, counts.end_id, tuple(len(each.keys) for each in counts.longer))
    with torch.device("meta"):  # its numbers come one order after the other
        network = NGram(config)
    orders = _adjust(counts)
    words = next(orders).counts
    off = _taken_off(words)
    probabilities = (words - off) / words.sum()
    probabilities += off.sum() / words.sum() / config.n_vocab
    tensors = {"orders.0.log_probability": _logarithms(probabilities)}
    for i, order in enumerate(orders):
        contexts = order.keys // config.n_vocab
        off = _taken_off(order.counts)
        total = np.bincount(contexts, order.counts, minlength=len(probabilities))
        left = np.divide(
            np.bincount(contexts, off, minlength=len(probabilities)),
            total,
            out=np.ones(len(probabilities)),
            where=total > 0,
        )
        probabilities = (order.counts - off) / total[contexts] + left[contexts] * probabilities[order.shorter]
        tensors |= {
            f"orders.{i}.backoff": _logarithms(left),
            f"orders.{i + 1}.keys": torch.from_numpy(order.keys),
            f"orders.{i + 1}.log_probability": _logarithms(probabilities),
        }
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def _logarithms(numbers: Floats) -> Tensor:
    return torch.from_numpy(np.log(numbers)).float()


def _taken_off(adjusted: Array) -> Floats:
    return np.array([0.0, *discounts(adjusted)])[np.minimum(adjusted, 3)]


def _adjust(counts: NGramCounts) -> Iterator[_Adjusted]:
    """Of each order in turn, from single words on: counted by how many words came before.

    The longest are counted as often as they were seen, and so is how documents begin.
    """
    V, opening = counts.n_vocab, slice(counts.end_id, counts.end_id + 1)  # what begins a document
    keys, seen, shorter = np.arange(V), counts.words, np.zeros(V, np.int64)  # of the order at hand
    for n, longer in enumerate(counts.longer):
        found = _without_first(longer.keys, keys, shorter, V)
        adjusted = np.bincount(found, minlength=len(keys))
        if n > 0:  # a word alone is counted as what is read, and a beginning never is
            adjusted[opening] = seen[opening]
        yield _Adjusted(keys, adjusted, shorter)
        edges = np.searchsorted(longer.keys, np.array([opening.start, opening.stop]) * V)
        opening = slice(int(edges[0]), int(edges[1]))
        keys, seen, shorter = longer.keys, longer.counts, found
    yield _Adjusted(keys, seen, shorter)


def _without_first(longer: Array, keys: Array, shorter: Array, n_vocab: int) -> Array:
    """Where each n-gram is without its first word, among those of the order below; a block at a time."""
    found = np.empty(len(longer), np.int64)
    for start in range(0, len(longer), BLOCK):
        where = slice(start, start + BLOCK)
        contexts, words = np.divmod(longer[where], n_vocab)
        wanted = shorter[contexts] * n_vocab + words
        found[where] = find(keys, wanted)
        assert (keys[np.minimum(found[where], len(keys) - 1)] == wanted).all(), "an n-gram lacks its end"
    return found
