"""The KV cache of a decoding batch: sequences of different lengths, one per slot, that come and go.

Shapes: B rows of a step, H key-value heads, S positions, D features per head, N slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache

LENGTH_STEP = 64  # positions


def padded_length(length: int) -> int:
    """The number of positions that the last token of a sequence attends over, including masked ones past its end.

    The number is rounded up so that many sequences share one kernel call. It depends on the sequence's own length
    alone, so that the results do not depend on the rest of the batch.
    """
    return -(-length // LENGTH_STEP) * LENGTH_STEP


class BatchedBlock:
    """One block's part of a `BatchedKVCache`."""

    def __init__(self, cache: BatchedKVCache, block: int) -> None:
        self.cache, self.block = cache, block

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append one token (B H 1 D) to each of the step's slots and return all slots: N H S D."""
        data, (slots, positions) = self.cache.data[self.block], self.cache.targets
        B = len(slots)  # further rows are padding and are not stored
        data[0, slots, :, positions] = key[:B, :, 0]
        data[1, slots, :, positions] = value[:B, :, 0]
        return data[0], data[1]


class BatchedKVCache:
    """Storage for many sequences at once, one per slot. It grows with the longest sequence.

    Between a sequence's end and its padded length, the data is zero: masked positions have weight 0, but 0 ·
    NaN would be NaN. Beyond that, the data is arbitrary.
    """

    def __init__(
        self,
        config: Config,
        count: int,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.count, self.max_length = count, padded_length(config.n_context)
        size = min(self.max_length, 4 * LENGTH_STEP)
        shape = (config.n_block, 2, count, config.n_kv_head, size, config.d_head)
        self.data = torch.empty(shape, device=device, dtype=dtype)
        self.lengths = [0] * count  # the padded length used in each slot
        self.blocks = [BatchedBlock(self, i) for i in range(config.n_block)]
        # Where the current step writes: the slots of its rows, and the positions of their new tokens.
        self.targets = (torch.tensor([], dtype=torch.long), torch.tensor([], dtype=torch.long))

    def insert(self, slot: int, cache: KVCache) -> None:
        """Copy a sequence that was prefilled on its own into a slot."""
        self._reserve(slot, padded_length(cache.length))
        self.data[:, :, slot, :, : cache.length] = cache.data[:, :, 0, :, : cache.length]
        self.data[:, :, slot, :, cache.length : padded_length(cache.length)] = 0

    def extend(self, slot: int, position: int) -> None:
        """Make room for a token at this position, the next in the slot's sequence."""
        if position % LENGTH_STEP == 0:
            self._reserve(slot, position + LENGTH_STEP)
            self.data[:, :, slot, :, position : position + LENGTH_STEP] = 0

    def set_positions(self, slots: Sequence[int], positions: Sequence[int]) -> None:
        """Set where the tokens of the next step are written."""
        device = self.data.device
        self.targets = (torch.tensor(slots, device=device), torch.tensor(positions, device=device))

    def _reserve(self, slot: int, size: int) -> None:
        """Give a slot `size` positions, growing all slots if necessary; used data is kept."""
        if size > self.data.shape[4]:
            shape = list(self.data.shape)
            shape[4] = min(self.max_length, max(size, 2 * shape[4]))
            data = self.data.new_empty(shape)
            for i, used in enumerate(self.lengths):
                data[:, :, i, :, :used] = self.data[:, :, i, :, :used]
            self.data = data
        self.lengths[slot] = size
