"""What dividing by √d_k does to the softmax, measured on random scores as on the page (`scaledScores.ts`)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.model.attention_steps import softmax

QUERIES, KEYS = 60, 8  # keys per query
MULTIPLIER, MODULUS = 48271, 2**31 - 1  # of the Park–Miller generator


def draw_scores(d_k: int, seed: int) -> Tensor:
    """The dot products of random queries with eight keys each; all components have mean 0 and variance 1."""
    drawn = normal(QUERIES * (1 + KEYS) * d_k, seed).view(QUERIES, 1 + KEYS, d_k)
    return (drawn[:, 1:] @ drawn[:, 0, :, None])[:, :, 0]


def normal(count: int, seed: int) -> Tensor:
    """Normally distributed numbers: the Park–Miller generator and the Box–Muller transform."""
    states = []
    for _ in range(2 * count):
        seed = seed * MULTIPLIER % MODULUS
        states.append(seed / MODULUS)
    first, second = torch.tensor(states, dtype=torch.float64).view(count, 2).T
    return (-2 * first.log()).sqrt() * (2 * math.pi * second).cos()


def sharpness(scores: Tensor) -> list[float]:
    """The standard deviation of scores, and the means of the largest weight and of its slope."""
    largest = softmax(scores).amax(-1)
    measured = scores.square().mean().sqrt(), largest.mean(), (largest * (1 - largest)).mean()
    return [each.item() for each in measured]
