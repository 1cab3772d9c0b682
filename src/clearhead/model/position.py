"""Position information: added to the embedding (learned, sinusoidal) or turned into queries and keys.

Shapes: B sequences, T positions, H heads, D features a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.model.config import RopeScaling

Rotation = tuple[Tensor, Tensor]  # cosines and sines, B T and one for each pair of features turned


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Sines and cosines of falling frequency, sine and cosine taking turns: … → … width."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device) / width)
    angles = positions[..., None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[..., :width]


def rotation(positions: Tensor, width: int, base: float, stretch: RopeScaling | None = None) -> Rotation:
    """How far each pair of features is turned at each position."""
    frequencies = base ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float) / width)
    if stretch is not None:
        frequencies = stretched(frequencies, stretch)
    angles = positions[..., None] * frequencies
    return angles.cos(), angles.sin()


def stretched(frequencies: Tensor, stretch: RopeScaling) -> Tensor:
    """Slower turns, so that a longer context goes no further round than the one first learned."""
    slower = frequencies / stretch.factor
    if stretch.kind == "linear":
        return slower
    rounds = stretch.context * frequencies / (2 * math.pi)
    kept = ((rounds - stretch.slow) / (stretch.fast - stretch.slow)).clamp(0, 1)
    return torch.lerp(slower, frequencies, kept)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn feature i together with feature i + D/2, so that q · k depends on the distance alone: B H T D.

    Where fewer than D features are turned, they are the first ones and the rest stays.
    """
    cos, sin = (angles[:, None].to(x.dtype) for angles in rotation)
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
