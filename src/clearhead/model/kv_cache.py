"""The KV cache: keys and values of past positions, kept so that only a new token's row must be computed.

Shapes: B sequences, H key-value heads, T new positions, S positions so far, D features per head.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from clearhead.model.config import Config


class BlockKVCache(Protocol):
    """The keys and values of one block."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append T new keys and values (B H T D) and return all of them (B H S D)."""
        ...


class KVCache:
    """Storage for `size` positions of `batch` sequences in every block. The first `length` are filled."""

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
        self.data = torch.zeros(shape, device=device, dtype=dtype)

    @property
    def blocks(self) -> list[ContiguousBlock]:
        # Created on each access: if stored, they and the cache would form a reference cycle, which would keep
        # the memory until the next run of the garbage collector.
        return [ContiguousBlock(self, self.data[i, 0], self.data[i, 1]) for i in range(len(self.data))]


class ContiguousBlock:
    """One block's part of a `KVCache`."""

    def __init__(self, cache: KVCache, key: Tensor, value: Tensor) -> None:
        self.cache, self.key, self.value = cache, key, value

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        start, stop = self.cache.length, self.cache.length + key.shape[2]
        # The cache serves generation, not training: no gradient flows through it.
        self.key[:, :, start:stop] = key.detach()
        self.value[:, :, start:stop] = value.detach()
        return self.key[:, :, :stop], self.value[:, :, :stop]
