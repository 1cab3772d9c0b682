"""Positions: vectors added to the embedding (learned, sinusoidal), or rotary position embeddings (RoPE).

Shapes: B sequences, T positions, H heads, D features per head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.model.config import Config, RopeScaling
from clearhead.model.fast_backward import Rotate, is_faster

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
        frequencies = scale_frequencies(frequencies, scaling, base)
    angles = positions[..., None] * frequencies
    factor = 1.0 if scaling is None else scaling.attention_factor
    return angles.cos() * factor, angles.sin() * factor


def rotations(positions: Tensor, config: Config) -> list[Rotation | None]:
    """The rotation of each block. Some blocks may have none, and local blocks may use a different base."""
    everywhere = rotation(positions, config.rotary_dim, config.rotary_base, config.rope_scaling)
    local = everywhere
    if config.local_rotary_base:
        local = rotation(positions, config.rotary_dim, config.local_rotary_base)
    own = [local if i in config.local_blocks else everywhere for i in range(config.n_block)]
    return [None if i in config.unrotated_blocks else rotation for i, rotation in enumerate(own)]


def scale_frequencies(frequencies: Tensor, scaling: RopeScaling, base: float) -> Tensor:
    """Lower the frequencies so that a longer context covers the angles seen in training."""
    slower = frequencies / scaling.factor
    if scaling.kind == "linear":
        return slower
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    if scaling.kind == "llama3":
        rounds = scaling.original_context * frequencies / (2 * math.pi)
        kept = (rounds - low) / (high - low)
    else:
        pairs, turns = len(frequencies), scaling.original_context / (2 * math.pi)
        # The index of the frequency that completes this many turns.
        first, last = (pairs * math.log(turns / rounds) / math.log(base) for rounds in (high, low))
        first, last = max(math.floor(first), 0), min(math.ceil(last), 2 * pairs - 1)
        number = torch.arange(pairs, device=frequencies.device)
        kept = 1 - (number - first) / max(last - first, 1e-3)
    return torch.lerp(slower, frequencies, kept.clamp(0, 1))


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate feature i together with feature i + D/2, so that positions enter q · k only as a distance: B H T D.

    With partial rotation, only the first `rotary_dim` features rotate, each i with i + `rotary_dim`/2.
    """
    cos, sin = (angles[:, None].to(x.dtype) for angles in rotation)
    if is_faster(x):
        return Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
