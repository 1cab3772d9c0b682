"""Skip-gram's inner loops, compiled by numba. Several threads may run them on the same tables at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearhead.runtime.numba_cache import compiled

FloatArray = NDArray[np.floating[Any]]


@compiled(inline="always")
def draw(state: Any) -> Any:
    """word2vec's random number generator: the next state, whose upper 32 bits are usable."""
    return state * np.uint64(25214903917) + np.uint64(11)


@compiled(inline="always")
def below(state: Any, n: Any) -> Any:
    """Map a state to a number from 0 to n - 1."""
    return np.int64(((state >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled()
def descend(
    inputs: FloatArray,
    outputs: FloatArray,
    word: Any,
    words: NDArray[np.int64],
    rate: float,
    change: FloatArray,
    steps: FloatArray,
) -> None:
    """One gradient step on a pair's loss: -log σ(x·y) for the first of `words`, plus -log σ(-x·y) for each
    negative sample after it.

    `change` (D) and `steps` (at least one per word) are buffers.
    """
    x = inputs[word]
    number = x.dtype.type
    for w in range(words.shape[0]):
        y = outputs[words[w]]
        score = number(0)
        for k in range(x.shape[0]):
            score += x[k] * y[k]
        steps[w] = number(rate * ((w == 0) - 1 / (1 + np.exp(-score))))
    change[:] = 0
    for w in range(words.shape[0]):
        y, step = outputs[words[w]], steps[w]
        for k in range(x.shape[0]):
            change[k] += step * y[k]
            y[k] += step * x[k]
    for k in range(x.shape[0]):
        x[k] += change[k]


@compiled()
def draw_against(
    neighbor: Any, sure: NDArray[np.uint32], other: NDArray[np.int32], words: NDArray[np.int64], state: Any
) -> Any:
    """Fill `words` with a neighbor and its negative samples; return their number and the next random state.

    A negative sample equal to the neighbor is dropped.
    """
    words[0] = neighbor
    n = 1
    for _ in range(words.shape[0] - 1):
        state = draw(state)
        word = below(state, sure.shape[0])
        state = draw(state)
        if (state >> np.uint64(32)) >= sure[word]:
            word = np.int64(other[word])
        if word != neighbor:
            words[n] = word
            n += 1
    return n, state


@compiled()
def learn_stretch(
    inputs: FloatArray,
    outputs: FloatArray,
    ids: NDArray[np.int32],
    kept: NDArray[np.uint32],
    sure: NDArray[np.uint32],
    other: NDArray[np.int32],
    window: int,
    negative: int,
    rate: float,
    last_rate: float,
    seed: int,
) -> int:
    """Train on a chunk of text with a linearly decaying learning rate; return the number of pairs."""
    state = draw(draw(np.uint64(seed)))
    text = np.empty(ids.shape[0], np.int32)
    n = 0
    for i in ids:
        if i >= 0:
            state = draw(state)
            if (state >> np.uint64(32)) > kept[i]:
                continue
        text[n] = i
        n += 1
    change = np.empty(inputs.shape[1], inputs.dtype)
    steps = np.empty(1 + negative, inputs.dtype)
    words = np.empty(1 + negative, np.int64)
    pairs = 0
    for t in range(n):
        center = np.int64(text[t])
        if center < 0:
            continue
        now = rate + (last_rate - rate) * t / n
        state = draw(state)
        reach = 1 + below(state, window)
        first, last = t, t
        while first > 0 and first > t - reach and text[first - 1] >= 0:
            first -= 1
        while last < n - 1 and last < t + reach and text[last + 1] >= 0:
            last += 1
        for s in range(first, last + 1):
            if s != t:
                # As in word2vec, the neighbor predicts the center: over a text, each pair occurs both ways.
                m, state = draw_against(center, sure, other, words, state)
                descend(inputs, outputs, np.int64(text[s]), words[:m], now, change, steps)
                pairs += 1
    return pairs
