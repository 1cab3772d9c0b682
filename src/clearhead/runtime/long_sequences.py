"""Long sequences through a transformer in parts, so that only its residual stream, and one block's keys and values, are
in memory for all positions.

Shapes: B sequences, T positions, H key-value heads, C features of the residual stream, D features per head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import LONG, AttentionMask, part_width
from clearhead.model.position import Rotation
from clearhead.model.transformer import Transformer


def is_long(network: Transformer, ids: Tensor) -> bool:
    """Whether `run_in_parts` saves memory and is possible: gradients would need everything."""
    return ids.shape[1] > LONG and network.config.causal and not torch.is_grad_enabled()


def run_in_parts(
    i: int,  # noqa: ARG001
    block: Any,
    x: Tensor,
    mask: AttentionMask,
    rotation: Rotation | None,
    cache: BlockKVCache | None,
) -> Tensor:
    """Run a block on the positions in place, one part at a time: B T C → B T C."""
    assert cache is None, "a long sequence has keys and values of its own"
    B, T, _ = x.shape
    past, width = _Past(T), part_width(B, T)
    for start in range(0, T, width):
        stop = min(start + width, T)
        past.first = mask.first_key(start)
        angles = None if rotation is None else (rotation[0][:, start:stop], rotation[1][:, start:stop])
        x[:, start:stop] = block(x[:, start:stop], mask.part(start, stop, x.device), angles, past)
    return x


class _Past:
    """The keys and values of one block at up to `size` positions, of which those from `first` on are attended to."""

    def __init__(self, size: int) -> None:
        self.size, self.length, self.first = size, 0, 0
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.key is None or self.value is None:
            B, H, _, D = key.shape
            self.key, self.value = key.new_empty(B, H, self.size, D), value.new_empty(B, H, self.size, D)
        start, self.length = self.length, self.length + key.shape[2]
        self.key[:, :, start : self.length] = key
        self.value[:, :, start : self.length] = value
        here = slice(self.first, self.length)
        return self.key[:, :, here], self.value[:, :, here]
