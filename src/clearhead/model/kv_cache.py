"""The key-value cache: what past positions offer, kept so that each new token costs one row.

Shapes: B sequences, H shared heads, T new positions, S positions so far, D features a head, N slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from clearhead.model.config import Config
from clearhead.model.mask import REACH, reach


class Keeps(Protocol):
    """Whatever keeps the keys and values of one block: new ones in, all of them out."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]: ...


class BlockKVCache:
    """The keys and values of one block."""

    def __init__(self, cache: KVCache, key: Tensor, value: Tensor) -> None:
        self.cache, self.key, self.value = cache, key, value

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put T new ones behind the old ones, and get all: B H S D."""
        start, stop = self.cache.length, self.cache.length + key.shape[2]
        # For writing on, not for learning: no gradient flows back through what is kept.
        self.key[:, :, start:stop] = key.detach()
        self.value[:, :, start:stop] = value.detach()
        return self.key[:, :, :stop], self.value[:, :, :stop]


class KVCache:
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
        self.room = torch.zeros(shape, device=device, dtype=dtype)

    @property
    def blocks(self) -> list[BlockKVCache]:
        # Made anew each time: were they kept, they and the cache would hold each other, and the room would be
        # taken until Python next looks for such rings.
        return [BlockKVCache(self, self.room[i, 0], self.room[i, 1]) for i in range(len(self.room))]


class BatchedBlockKVCache:
    """The keys and values of one block in every slot."""

    def __init__(self, slots: BatchedKVCache, block: int) -> None:
        self.slots, self.block = slots, block

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put one new word's (B H 1 D) behind what each of the step's slots holds, and get all: N H S D."""
        room, (slots, positions) = self.slots.room[self.block], self.slots.places
        B = len(slots)  # the rows behind them are padding and are kept nowhere
        room[0, slots, :, positions] = key[:B, :, 0]
        room[1, slots, :, positions] = value[:B, :, 0]
        return room[0], room[1]


class BatchedKVCache:
    """Room for many texts at once, each of its own length, that come and go: one in each slot.

    Within a text's reach, what lies behind its end is zero: it weighs nothing, but nothing times NaN would be
    NaN. Elsewhere it is whatever it was. The room grows with the longest text.
    """

    def __init__(
        self,
        config: Config,
        count: int,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.count, self.longest = count, reach(config.n_context)
        size = min(self.longest, 4 * REACH)
        shape = (config.n_block, 2, count, config.n_kv_head, size, config.d_head)
        self.room = torch.empty(shape, device=device, dtype=dtype)
        self.reaches = [0] * count  # how much of each slot has been used
        self.blocks = [BatchedBlockKVCache(self, i) for i in range(config.n_block)]
        # Of the step that is being made: the rows' slots, and the positions of their new words.
        self.places = (torch.tensor([], dtype=torch.long), torch.tensor([], dtype=torch.long))

    def place(self, slot: int, cache: KVCache) -> None:
        """Put a text that was read by itself into a slot."""
        self._reach(slot, reach(cache.length))
        self.room[:, :, slot, :, : cache.length] = cache.room[:, :, 0, :, : cache.length]
        self.room[:, :, slot, :, cache.length : reach(cache.length)] = 0

    def extend(self, slot: int, position: int) -> None:
        """Make sure of room for a word at this position, the next one of the slot's text."""
        if position % REACH == 0:
            self._reach(slot, position + REACH)
            self.room[:, :, slot, :, position : position + REACH] = 0

    def aim(self, slots: Sequence[int], positions: Sequence[int]) -> None:
        """Say where the next step's words belong."""
        device = self.room.device
        self.places = (torch.tensor(slots, device=device), torch.tensor(positions, device=device))

    def _reach(self, slot: int, size: int) -> None:
        """Let a slot have so many positions. If no slot has, all get more; what was used of them is kept."""
        if size > self.room.shape[4]:
            shape = list(self.room.shape)
            shape[4] = min(self.longest, max(size, 2 * shape[4]))
            room = self.room.new_empty(shape)
            for each, used in enumerate(self.reaches):
                room[:, :, each, :, :used] = self.room[:, :, each, :, :used]
            self.room = room
        self.reaches[slot] = size
