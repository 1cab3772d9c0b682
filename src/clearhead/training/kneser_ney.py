"""Modified Kneser-Ney: counts of n-grams to probabilities, interpolated over all orders.

A word that was seen after few others is no likely word after a new one, however often it was seen: so
shorter n-grams are counted by how many different words they came after. From each count something is taken
off, and goes to what shorter contexts say (Chen and Goodman 1999, in the words of Heafield et al. 2013):

    p(w | context) = (a - D(a)) / total(context) + b(context) p(w | context without its first word)

where a is the adjusted count of the n-gram, and b is what was taken off. Below single words all are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from clearhead.model.ngram import NGram, Order
from clearhead.model.ngram_config import NGramConfig
from clearhead.training.ngram_counts import Array, NGramCounts

Floats = NDArray[np.float64]
Discounts = tuple[float, float, float]  # from counts of 1, of 2, and of 3 or more
FALLBACK: Discounts = (0.5, 1.0, 1.5)  # where a text is too small to tell


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
    words, longer = _adjust(counts)
    network = NGram(config)
    taken = discounts(words)
    probabilities = (words - _taken_off(words, taken)) / words.sum()
    probabilities += _taken_off(words, taken).sum() / words.sum() / config.n_vocab
    for i, order in enumerate(longer):
        below = network.orders[i]
        assert isinstance(below, Order)
        _fill(below, probabilities)
        contexts = order.keys // config.n_vocab
        off = _taken_off(order.counts, discounts(order.counts))
        total = np.bincount(contexts, order.counts, minlength=len(probabilities))
        left = np.divide(
            np.bincount(contexts, off, minlength=len(probabilities)),
            total,
            out=np.ones(len(probabilities)),
            where=total > 0,
        )
        assert below.backoff is not None
        below.backoff.data = torch.from_numpy(np.log(left)).float()
        probabilities = (order.counts - off) / total[contexts] + left[contexts] * probabilities[order.shorter]
        longest = network.orders[i + 1]
        longest.keys = torch.from_numpy(order.keys)
    last = network.orders[-1]
    assert isinstance(last, Order)
    _fill(last, probabilities)
    return network.eval()


def _fill(order: Order, probabilities: Floats) -> None:
    order.log_probability.data = torch.from_numpy(np.log(probabilities)).float()


def _taken_off(adjusted: Array, discounts: Discounts) -> Floats:
    return np.array([0.0, *discounts])[np.minimum(adjusted, 3)]


def _adjust(counts: NGramCounts) -> tuple[Array, list[_Adjusted]]:
    """Counts by how many words came before; of the longest, and of how documents begin, as often as seen."""
    adjusted: list[Array] = [counts.words, *(each.counts for each in counts.longer)]
    shorter: list[Array] = []
    opening = slice(counts.end_id, counts.end_id + 1)  # those that begin a document, of each order
    for n, each in enumerate(counts.longer):
        contexts, words = np.divmod(each.keys, counts.n_vocab)
        if n == 0:
            found = words
        else:
            below = counts.longer[n - 1].keys
            wanted = shorter[-1][contexts] * counts.n_vocab + words
            found = np.searchsorted(below, wanted)
            assert (below[np.minimum(found, len(below) - 1)] == wanted).all(), "an n-gram lacks its end"
        shorter.append(found)
        new = np.bincount(found, minlength=len(adjusted[n]))
        if n > 0:  # a word alone is counted as what is read, and a beginning never is
            new[opening] = adjusted[n][opening]
        adjusted[n] = new
        edges = np.searchsorted(each.keys, np.array([opening.start, opening.stop]) * counts.n_vocab)
        opening = slice(int(edges[0]), int(edges[1]))
    longer = [_Adjusted(c.keys, a, s) for c, a, s in zip(counts.longer, adjusted[1:], shorter, strict=True)]
    return adjusted[0], longer
