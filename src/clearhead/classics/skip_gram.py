"""Skip-gram with negative sampling: words learn to predict their neighbours, and so get vectors.

Shapes: V words, D numbers a vector.
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

Word = TypeVar("Word")

STRETCH = 100_000  # words that a thread learns from at a time
LAST_RATE = 1 / 250  # the share of the rate that is left at the end; word2vec goes from 0.025 to 0.0001
POWER = 0.75  # of a word's count, for how often it is drawn against a pair
MOST = {"width": 10_000, "window": 1000, "negative": 1000, "epochs": 10_000, "workers": 256}
CERTAIN = 2**32 - 1  # a probability of 1: the kernel compares whole numbers


def pairs(words: Sequence[Word], window: int = 2) -> Iterator[tuple[Word, Word]]:
    """Every (centre, neighbour) that the lectures' window finds: what skip-gram learns from."""
    for i, centre in enumerate(words):
        for j in range(max(0, i - window), min(len(words), i + window + 1)):
            if j != i:
                yield centre, words[j]


@dataclass(frozen=True)
class Settings:
    """How words are learned: with word2vec's numbers unless told otherwise."""

    width: int = 100  # numbers a vector
    window: int = 5  # how far the farthest neighbour may be; for each word it is drawn anew, from 1 to this
    negative: int = 5  # words drawn against each pair
    min_count: int = 5  # words that occur less often are left out
    sample: float = 1e-3  # a word that is more of the text than this is partly skipped; 0 skips nothing
    epochs: int = 5  # times through the text
    rate: float = 0.025  # of learning; it falls to almost nothing
    seed: int = 0
    workers: int | None = None  # threads; as many as there are cores unless said

    def __post_init__(self) -> None:
        for name in ("width", "window", "negative", "min_count", "epochs", "seed", "workers"):
            value, least = getattr(self, name), int(name not in ("negative", "seed"))
            most = MOST.get(name, 2**63 - 1)
            if value is None and name == "workers":
                continue
            if type(value) is not int or not least <= value <= most:
                raise UserError(f"{name} = {value!r}: expected a whole number from {least} to {most}")
        for name, most in (("sample", 1), ("rate", 10)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise UserError(f"{name} = {value!r}: expected a number from 0 to {most}")


@dataclass(frozen=True)
class SkipGramProgress:
    """How far learning came."""

    words: int  # read so far, in all epochs
    of: int
    pairs: int  # learned from so far


class SkipGram:
    """Two tables that learn from a text as this is iterated over, a stretch at a time.

    `inputs` (V D) are the words' vectors as centres, which are kept; `outputs` (V D) those as neighbours.
    With one worker the same seed gives the same bits; more write into the tables at once, and do not wait
    for each other, so that what they give differs a little each time.
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
            # One worker is this thread itself.
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
        return settings.rate * max(1 - done, LAST_RATE)


def keeping(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    """The probability with which each word is not skipped: word2vec's own formula."""
    if sample == 0:
        return np.ones(len(counts))
    share = counts / counts.sum()
    return np.minimum(1, np.sqrt(sample / share) + sample / share)


def alias(weights: NDArray[np.float64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """What draws words by their weights with two numbers each (Walker's alias method).

    Draw any word evenly; with its first number as probability it is the one, or else its second is.
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
    """The inner loops, compiled as they are first run; only who trains words needs the compiler."""
    require("numba", "training word vectors")
    from clearhead.classics import skip_gram_kernel

    return skip_gram_kernel
