"""The key-value cache: what past positions offer, kept so that each new token costs one row.

Shapes: B sequences, H shared heads, T new positions, S positions so far, D features a head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.model.config import Config


class BlockCache:
    """The keys and values of one block."""

    def __init__(self, cache: Cache, key: Tensor, value: Tensor) -> None:
        self.cache, self.key, self.value = cache, key, value

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put T new ones behind the old ones, and get all: B H S D."""
        start, stop = self.cache.length, self.cache.length + key.shape[2]
        # For writing on, not for learning: no gradient flows back through what is kept.
        self.key[:, :, start:stop] = key.detach()
        self.value[:, :, start:stop] = value.detach()
        return self.key[:, :, :stop], self.value[:, :, :stop]


class Cache:
    """Room for `size` positions of `batch` sequences in every block. `length` of them are filled."""

    def __init__(
        self,
        config: Config,
        batch: int = 1,
        size: int | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.size = config.n_context if size is None else size
        self.length = 0
        shape = (config.n_block, 2, batch, config.n_kv_head, self.size, config.d_head)
        room = torch.zeros(shape, device=device, dtype=dtype)
        self.blocks = [BlockCache(self, room[i, 0], room[i, 1]) for i in range(config.n_block)]
