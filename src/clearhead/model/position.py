"""Positions: vectors added to the embedding (learned, sinusoidal), or rotary position embeddings (RoPE).

Shapes: B sequences, T positions, H heads, D features per head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.model.config import Config, RopeScaling

Rotation = tuple[Tensor, Tensor]  # cosines and sines: B T × rotated pairs of features


def document_positions(documents: Tensor) -> Tensor:
    """The position of each token in its own document, given the index of its document: B T → B T."""
    index = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    starts = torch.ones_like(documents, dtype=torch.bool)
    starts[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return index - torch.where(starts, index, 0).cummax(1).values


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Alternating sines and cosines of decreasing frequency: … → … width."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device) / width)
    angles = positions[..., None] * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[..., :width]


def rotation(positions: Tensor, width: int, base: float, scaling: RopeScaling | None = None) -> Rotation:
    """The RoPE angle of each pair of features at each position, as cosines and sines."""
    frequencies = base ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float) / width)
    if scaling is not None:
        frequencies = scale_frequencies(frequencies, scaling)
    angles = positions[..., None] * frequencies
    return angles.cos(), angles.sin()


def rotations(positions: Tensor, config: Config) -> list[Rotation]:
    """The rotation of each block: local blocks may have a base of their own."""
    everywhere = rotation(positions, config.rotary_dim, config.rotary_base, config.rope_scaling)
    local = everywhere
    if config.local_rotary_base:
        local = rotation(positions, config.rotary_dim, config.local_rotary_base)
    return [local if i in config.local_blocks else everywhere for i in range(config.n_block)]


def scale_frequencies(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Lower the frequencies so that a longer context covers the angles seen in training."""
    slower = frequencies / scaling.factor
    if scaling.kind == "linear":
        return slower
    rounds = scaling.original_context * frequencies / (2 * math.pi)
    kept = ((rounds - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)).clamp(
        0, 1
    )
    return torch.lerp(slower, frequencies, kept)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate feature i together with feature i + D/2, so that positions enter q · k only as a distance: B H T D.

    With partial rotation, only the first `rotary_dim` features rotate, each i with i + `rotary_dim`/2.
    """
    cos, sin = (angles[:, None].to(x.dtype) for angles in rotation)
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
