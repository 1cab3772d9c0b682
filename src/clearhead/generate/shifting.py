"""Past a full context without reading it again: the older half of the words is dropped from the cache.

Shapes: N samples, T positions, V words, H shared heads, D features a head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.generate.continuation import Reader
from clearhead.model.position import rotate
from clearhead.model.transformer import Transformer

# The first words stay: many heads look there when they look for nothing (https://arxiv.org/abs/2309.17453).
FIRST = 4


class ShiftingReader(Reader):
    """A reader that drops words where `Reader` reads the window again; much faster, and an approximation.

    What stays is moved to earlier positions by turning its keys back. But it was read when the dropped words
    were still there, and in all blocks but the first it has seen them; and from half to all of a context is
    left, where `Reader` always has all of it.
    """

    def __init__(self, network: Transformer, samples: int = 1, longest: int | None = None) -> None:
        if network.config.position not in ("rotary", "none"):
            raise UserError(
                f"shift moves words to other positions, which only rotary ones allow; this model's are "
                f"{network.config.position}: leave shift out"
            )
        super().__init__(network, samples, longest)
        self.first = min(FIRST, self.n_context // 4)

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        ids = ids.to(self.ids.device)[:, -self.n_context :]
        self.ids = torch.cat((self.ids, ids), dim=1)[:, -self.n_context :]
        lacking = self.cache.length + ids.shape[1] - self.cache.size
        if lacking > self.cache.length - self.first:
            self.cache.length = 0  # so many new words that none of the old ones matter
        elif lacking > 0:
            self._drop(max(lacking, (self.cache.length - self.first) // 2))
        return self.network(ids, cache=self.cache)[:, -1]

    def _drop(self, count: int) -> None:
        """The oldest words after the first ones; the rest goes `count` positions back."""
        start, length = self.first, self.cache.length
        back = torch.tensor([[-count]], device=self.ids.device)
        for block, rotation in zip(self.cache.blocks, self.network.rotations(back), strict=True):
            keys, values = (kept[:, :, start + count : length].clone() for kept in (block.key, block.value))
            if rotation is not None:
                keys = rotate(keys.float(), rotation).to(keys.dtype)
            block.key[:, :, start : length - count] = keys
            block.value[:, :, start : length - count] = values
        self.cache.length = length - count
