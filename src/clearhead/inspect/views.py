"""A trace's blocks and heads as objects whose attributes are the sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.inspect.attribution import Why, why
from clearhead.inspect.sites import block_names

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace

Choice = slice | Sequence[int] | int | None  # of rows or columns; none is all


class BlockView:
    """A block of a trace: its sites as attributes, and its heads."""

    def __init__(self, trace: Trace, block: int) -> None:
        self._trace, self._block = trace, block

    @property
    def head(self) -> list[HeadView]:
        return [HeadView(self._trace, self._block, j) for j in range(self._trace.config.n_head)]

    @property
    def kv_head(self) -> list[HeadView]:
        return [HeadView(self._trace, self._block, k, "kv_head") for k in range(self._trace.config.n_kv_head)]

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._trace.read(
            f"block.{self._block}.{name.replace('_mean', '.mean').replace('_scale', '.scale')}"
        )

    def __dir__(self) -> list[str]:
        return ["head", "kv_head", *(name.replace(".", "_") for name in block_names(self._trace.config))]


class HeadView:
    """A head of a trace: its steps as attributes, or some rows and columns of them by `read`."""

    def __init__(self, trace: Trace, block: int, head: int, kind: str = "head") -> None:
        self._trace, self._block, self._head, self._kind = trace, block, head, kind

    def read(self, name: str, rows: Choice = None, columns: Choice = None) -> Tensor:
        return self._trace.read(f"block.{self._block}.{self._kind}.{self._head}.{name}", rows, columns)

    def why(self, looking: int, looked_at: int) -> Why:
        """Why this head looks from one position to another: its score, split over what was written before.

        With the scales of the norms at both positions held; the parts sum to the score.
        """
        trace = self._trace
        trace.check_single()
        places = trace.check_position(looking), trace.check_position(looked_at)
        with torch.set_grad_enabled(trace.grad):
            return why(trace, self._block, self._head, *places)

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.read(name)
