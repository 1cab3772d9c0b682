"""Position information: added to the embedding (learned, sinusoidal) or turned into queries and keys.

Shapes: B sequences, T positions, H heads, D features a head.
"""

from __future__ import annotations

import torch
from torch import Tensor

Rotation = tuple[Tensor, Tensor]  # cosines and sines, B T D/2


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Sines and cosines of falling frequency, sine and cosine taking turns: … → … width."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device) / width)
    angles = positions[..., None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[..., :width]


def rotation(positions: Tensor, d_head: int, base: float) -> Rotation:
    """How far each pair of features is turned at each position."""
    frequencies = base ** (-torch.arange(0, d_head, 2, device=positions.device, dtype=torch.float) / d_head)
    angles = positions[..., None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn feature i together with feature i + D/2, so that q · k depends on the distance alone: B H T D."""
    cos, sin = (angles[:, None].to(x.dtype) for angles in rotation)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
