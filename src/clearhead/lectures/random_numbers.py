"""Random numbers that are the same on every machine, and the same as on the page (`web/src/model/random.ts`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

WORD = 2**32  # integers are unsigned, with 32 bits


def draw(seed: int) -> Iterator[float]:
    """Uniform numbers from 0 to 1 (Mulberry32)."""
    state = seed % WORD
    while True:
        state = (state + 0x6D2B79F5) % WORD
        mixed = (state ^ state >> 15) * (state | 1) % WORD
        mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % WORD
        yield (mixed ^ mixed >> 14) / WORD


def uniform(size: float, seed: int, *shape: int) -> Tensor:
    """Uniform numbers from -size to size, in double precision."""
    drawn = torch.tensor([*islice(draw(seed), math.prod(shape))], dtype=torch.float64)
    return (size * (2 * drawn - 1)).view(shape)


def seed_of(word: str) -> int:
    """A seed for a word: its FNV-1a hash."""
    state = 0x811C9DC5
    for letter in word:
        state = (state ^ ord(letter)) * 0x01000193 % WORD
    return state
