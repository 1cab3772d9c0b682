"""Modified Kneser-Ney smoothing: turns n-gram counts into probabilities, interpolated over all orders.

Below the highest order, the count of an n-gram is the number of different tokens that precede it: a token
that follows only a few others is unlikely to follow a new one, however frequent it is. A discount D is
subtracted from each count, and the freed probability mass goes to shorter contexts (Chen and Goodman 1998,
in the notation of Heafield et al. 2013):

    p(w | context) = (a - D(a)) / total(context) + b(context) p(w | context without its first token)

where a is the adjusted count of the n-gram and b(context) the backoff weight. Below unigrams, the
distribution is uniform.
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
from clearhead.classics.ngram_counts import IntArray, NGramCounts, find

Floats = NDArray[np.float64]
Discounts = tuple[float, float, float]  # for counts of 1, of 2, and of 3 or more
FALLBACK: Discounts = (0.5, 1.0, 1.5)  # for texts too small for an estimate
BLOCK = 2**20  # n-grams looked up at once


def discounts(adjusted: IntArray) -> Discounts:
    """The discounts, from the number of n-grams of an order with counts of 1, 2, 3 and 4."""
    t1, t2, t3, t4 = (int((adjusted == count).sum()) for count in (1, 2, 3, 4))
    if not (t1 and t2 and t3 and t4):
        return FALLBACK
    y = t1 / (t1 + 2 * t2)
    found = (1 - 2 * y * t2 / t1, 2 - 3 * y * t3 / t2, 3 - 4 * y * t4 / t3)
    return found if all(0 < each < count for count, each in enumerate(found, 1)) else FALLBACK


@dataclass(frozen=True)
class _Adjusted:
    """The n-grams of an order with adjusted counts, and the index of each suffix (without the first token)."""

    keys: IntArray
    counts: IntArray
    shorter: IntArray


def estimate(counts: NGramCounts) -> NGram:
    """The n-gram model estimated from these counts."""
    config = NGramConfig(counts.n_vocab, counts.end_id, tuple(len(each.keys) for each in counts.longer))
    with torch.device("meta"):  # no allocation: the tensors are assigned below
        network = NGram(config)
    orders = _adjust(counts)
    unigrams = next(orders).counts
    off = _taken_off(unigrams)
    probabilities = (unigrams - off) / unigrams.sum()
    probabilities += off.sum() / unigrams.sum() / config.n_vocab
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


def _taken_off(adjusted: IntArray) -> Floats:
    return np.array([0.0, *discounts(adjusted)])[np.minimum(adjusted, 3)]


def _adjust(counts: NGramCounts) -> Iterator[_Adjusted]:
    """Adjusted counts of each order, from unigrams up: the number of different preceding tokens.

    The highest order, and n-grams at the start of a document, keep their raw counts.
    """
    V, opening = counts.n_vocab, slice(counts.end_id, counts.end_id + 1)  # the start of a document
    keys, seen, shorter = np.arange(V), counts.unigrams, np.zeros(V, np.int64)  # of the current order
    for n, longer in enumerate(counts.longer):
        found = _without_first(longer.keys, keys, shorter, V)
        adjusted = np.bincount(found, minlength=len(keys))
        if n > 0:  # a unigram counts as a prediction, and the document start is never predicted
            adjusted[opening] = seen[opening]
        yield _Adjusted(keys, adjusted, shorter)
        edges = np.searchsorted(longer.keys, np.array([opening.start, opening.stop]) * V)
        opening = slice(int(edges[0]), int(edges[1]))
        keys, seen, shorter = longer.keys, longer.counts, found
    yield _Adjusted(keys, seen, shorter)


def _without_first(longer: IntArray, keys: IntArray, shorter: IntArray, n_vocab: int) -> IntArray:
    """The index of each n-gram's suffix (without its first token) among the n-grams of the next lower order.

    Works one block at a time to bound memory.
    """
    found = np.empty(len(longer), np.int64)
    for start in range(0, len(longer), BLOCK):
        where = slice(start, start + BLOCK)
        contexts, tokens = np.divmod(longer[where], n_vocab)
        wanted = shorter[contexts] * n_vocab + tokens
        found[where] = find(keys, wanted)
        assert (keys[np.minimum(found[where], len(keys) - 1)] == wanted).all(), "an n-gram lacks its suffix"
    return found
