"""The Wilson score interval for a proportion."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval for the probability of a success. Unlike the normal approximation, it stays within 0 and 1."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, scale = successes / trials, 1 + z**2 / trials
    center = (share + z**2 / (2 * trials)) / scale
    half = z * sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / scale
    # Without rounding, the ends are exactly 0 and 1 here.
    low = center - half if successes else 0.0
    return low, center + half if successes < trials else 1.0
