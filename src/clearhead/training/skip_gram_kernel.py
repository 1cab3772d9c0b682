"""Skip-gram's inner loops, compiled by numba: several threads may run them on the same tables at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Table = NDArray[np.floating[Any]]


@njit(nogil=True, fastmath=True, inline="always")  # type: ignore[untyped-decorator]
def draw(state: Any) -> Any:
    """word2vec's random numbers: the next state, of which the upper 32 bits are good."""
    return state * np.uint64(25214903917) + np.uint64(11)


@njit(nogil=True, fastmath=True, inline="always")  # type: ignore[untyped-decorator]
def below(state: Any, n: Any) -> Any:
    """A number from 0 to n - 1 out of a state."""
    return np.int64(((state >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def learn(inputs: Table, outputs: Table, change: Table, i: int, j: int, label: float, rate: float) -> None:
    """One step for word i to predict (label 1) or not to predict (label 0) word j.

    The loss is -log σ(x·y) for 1 and -log σ(-x·y) for 0; what x should change by is added to `change`.
    """
    x, y = inputs[i], outputs[j]
    score = x.dtype.type(0)
    for k in range(x.shape[0]):
        score += x[k] * y[k]
    step = x.dtype.type((label - 1 / (1 + np.exp(-score))) * rate)
    for k in range(x.shape[0]):
        change[k] += step * y[k]
        y[k] += step * x[k]


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def learn_pair(
    inputs: Table,
    outputs: Table,
    change: Table,
    centre: int,
    neighbour: int,
    sure: NDArray[np.uint32],
    other: NDArray[np.int32],
    negative: int,
    rate: float,
    state: Any,
) -> Any:
    """One step for a pair and so many words drawn against it; gives the next random state."""
    change[:] = 0
    learn(inputs, outputs, change, centre, neighbour, 1.0, rate)
    for _ in range(negative):
        state = draw(state)
        word = below(state, sure.shape[0])
        state = draw(state)
        if (state >> np.uint64(32)) >= sure[word]:
            word = np.int64(other[word])
        if word != neighbour:
            learn(inputs, outputs, change, centre, word, 0.0, rate)
    x = inputs[centre]
    for k in range(x.shape[0]):
        x[k] += change[k]
    return state


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def learn_stretch(
    inputs: Table,
    outputs: Table,
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
    """Learn from a stretch of text, the rate going from one to the other; gives the number of pairs."""
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
    change = np.zeros(inputs.shape[1], inputs.dtype)
    pairs = 0
    for t in range(n):
        centre = np.int64(text[t])
        if centre < 0:
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
                state = learn_pair(
                    inputs, outputs, change, centre, np.int64(text[s]), sure, other, negative, now, state
                )
                pairs += 1
    return pairs
