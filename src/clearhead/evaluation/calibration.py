"""Calibration: whether the model's most likely token is right as often as its probability says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """The predictions whose probability is in one interval: how probable they were, and how many were right."""

    low: float
    high: float
    predictions: int
    confidence: float  # mean probability
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    bins: tuple[ReliabilityBin, ...]  # those with predictions, from the least to the most probable

    @classmethod
    def of(cls, confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> Calibration:
        """Divide the predictions among `bins` intervals of equal width; each includes its lower end."""
        numbers = np.minimum((confidence * bins).astype(np.int64), bins - 1)
        found = []
        for number in np.unique(numbers).tolist():
            inside = numbers == number
            share = float(confidence[inside].mean()), float(right[inside].mean())
            found.append(ReliabilityBin(number / bins, (number + 1) / bins, int(inside.sum()), *share))
        return cls(tuple(found))

    @property
    def accuracy(self) -> float:
        total = sum(each.predictions for each in self.bins)
        return sum(each.predictions * each.accuracy for each in self.bins) / total

    @property
    def expected_error(self) -> float:
        """The expected calibration error: the mean of |confidence - accuracy|, weighted by prediction count."""
        total = sum(each.predictions for each in self.bins)
        return sum(each.predictions * abs(each.confidence - each.accuracy) for each in self.bins) / total
