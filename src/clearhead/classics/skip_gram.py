"""Skip-gram with negative sampling: word vectors learned by predicting neighboring words.

Shapes: V words, D features per vector.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.text.word_corpus import WordCorpus

T = TypeVar("T")

STRETCH = 100_000  # words that a thread processes at a time
LAST_RATE = 1 / 250  # learning-rate multiplier at the end; word2vec goes from 0.025 to 0.0001
POWER = 0.75  # exponent on a word's count in the negative-sampling distribution
MOST = {"width": 10_000, "window": 1000, "negative": 1000, "epochs": 10_000, "workers": 256}
CERTAIN = 2**32 - 1  # a probability of 1: the kernel compares integers


def pairs(words: Sequence[T], window: int = 2) -> Iterator[tuple[T, T]]:
    """Yield every (center, neighbor) pair within a window (the lectures' by default): skip-gram's training examples."""
    for i, center in enumerate(words):
        for j in range(max(0, i - window), min(len(words), i + window + 1)):
            if j != i:
                yield center, words[j]


@dataclass(frozen=True)
class Settings:
    """The hyperparameters of skip-gram; the defaults are word2vec's."""

    width: int = 100  # features per vector
    window: int = 5  # maximum distance to a neighbor; the actual one is sampled per word, from 1 to this
    negative: int = 5  # negative samples per pair
    min_count: int = 5  # rarer words are left out
    sample: float = (
        1e-3  # subsampling threshold: words with a larger share are randomly skipped; 0 skips none
    )
    epochs: int = 5  # passes over the text
    learning_rate: float = 0.025  # initial learning rate; it decays to almost 0
    seed: int = 0
    workers: int | None = None  # threads; default: the number of cores

    def __post_init__(self) -> None:
        for name in ("width", "window", "negative", "min_count", "epochs", "seed", "workers"):
            value, least = getattr(self, name), int(name not in ("negative", "seed"))
            most = MOST.get(name, 2**63 - 1)
            if value is None and name == "workers":
                continue
            if type(value) is not int or not least <= value <= most:
                raise UserError(f"{name} = {value!r}: expected an integer from {least} to {most}")
        for name, most in (("sample", 1), ("learning_rate", 10)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise UserError(f"{name} = {value!r}: expected a number from 0 to {most}")


@dataclass(frozen=True)
class SkipGramProgress:
    """Progress of training."""

    words: int  # words processed so far, in all epochs
    of: int
    pairs: int  # pairs trained on so far


class SkipGram:
    """Two tables of vectors. Iterating over the object trains them on a text, one chunk at a time.

    `inputs` (V D) holds the vectors of center words, which are the result; `outputs` (V D) holds those of neighbors.
    With one worker, the same seed gives bit-identical vectors. Several workers update the tables without locks, so
    results vary slightly between runs.
    """

    def __init__(self, corpus: WordCorpus, settings: Settings) -> None:
        self._kernel = compiled()
        self._corpus, self._settings = corpus, settings
        shape = len(corpus.words), settings.width
        draw = np.random.default_rng(settings.seed)
        first = (draw.random(shape, np.float32) - 0.5) / shape[1]
        self.inputs: NDArray[np.float32] = first.astype(np.float32, copy=False)
        self.outputs: NDArray[np.float32] = np.zeros(shape, np.float32)

    def __iter__(self) -> Iterator[SkipGramProgress]:
        settings, ids = self._settings, self._corpus.ids
        starts = range(0, len(ids), STRETCH)
        learn = partial(
            self._learn,
            _certainty(keeping(self._corpus.counts, settings.sample)),
            *alias(self._corpus.counts.astype(np.float64) ** POWER),
        )
        stretches = [(epoch, start) for epoch in range(settings.epochs) for start in starts]
        words = n_pairs = 0
        workers = settings.workers or _cores()
        with ThreadPoolExecutor(workers) as threads:
            # A single worker runs in this thread.
            results = map(learn, stretches) if workers == 1 else threads.map(learn, stretches)
            try:
                for (_, start), learned in zip(stretches, results, strict=True):
                    words += len(ids[start : start + STRETCH])
                    n_pairs += learned
                    yield SkipGramProgress(words, settings.epochs * len(ids), n_pairs)
            finally:
                threads.shutdown(cancel_futures=True)

    def _learn(
        self,
        kept: NDArray[np.uint32],
        sure: NDArray[np.uint32],
        other: NDArray[np.int32],
        at: tuple[int, int],
    ) -> int:
        (epoch, start), settings, n = at, self._settings, len(self._corpus.ids)
        ids = np.array(self._corpus.ids[start : start + STRETCH])
        done = epoch * n + start
        (seed,) = np.random.SeedSequence([settings.seed, epoch, start]).generate_state(1, np.uint64)
        return self._kernel.learn_stretch(
            self.inputs,
            self.outputs,
            ids,
            kept,
            sure,
            other,
            settings.window,
            settings.negative,
            self._rate(done),
            self._rate(done + len(ids)),
            seed,
        )

    def _rate(self, words: int) -> float:
        settings = self._settings
        done = words / (settings.epochs * len(self._corpus.ids))
        return settings.learning_rate * max(1 - done, LAST_RATE)


def keeping(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    """The probability of keeping each word, by word2vec's formula."""
    if sample == 0:
        return np.ones(len(counts))
    share = counts / counts.sum()
    return np.minimum(1, np.sqrt(sample / share) + sample / share)


def alias(weights: NDArray[np.float64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """The alias table for sampling words by weight (Walker's alias method).

    Draw a word uniformly; keep it with its probability in the first array, otherwise take its alias from the second.
    """
    height = (weights / weights.sum() * len(weights)).tolist()
    sure, other = np.ones(len(height)), np.arange(len(height), dtype=np.int32)
    low = [i for i, h in enumerate(height) if h < 1]
    high = [i for i, h in enumerate(height) if h >= 1]
    while low and high:
        i, giver = low.pop(), high[-1]
        sure[i], other[i] = height[i], giver
        height[giver] -= 1 - height[i]
        if height[giver] < 1:
            low.append(high.pop())
    return _certainty(sure), other


def _certainty(probability: NDArray[np.float64]) -> NDArray[np.uint32]:
    return (probability * CERTAIN).astype(np.uint32)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled() -> Any:
    """The inner loops, compiled on first use: only training word vectors needs the compiler."""
    require("numba", "training word vectors")
    from clearhead.classics import skip_gram_kernel

    return skip_gram_kernel
