"""A trace's blocks and heads as objects whose attributes are the sites."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import Why, why
from clearhead.inspect.choice import Choice, check_index
from clearhead.inspect.sites import SHARED, block_names, head_names

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace

Part = TypeVar("Part")


class Parts(list[Part]):
    """Blocks or heads by number. One that does not exist is answered with those that do."""

    def __init__(self, what: str, parts: Iterable[Part]) -> None:
        super().__init__(parts)
        self.what = what

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return super().__getitem__(number)
        return super().__getitem__(check_index(number, len(self), self.what))


class BlockView:
    """A block of a trace: its sites as attributes (a dot in a name written as _), and its heads."""

    def __init__(self, trace: Trace, block: int) -> None:
        self._trace, self._block = trace, block

    @property
    def head(self) -> Parts[HeadView]:
        return Parts(
            "head", (HeadView(self._trace, self._block, j) for j in range(self._trace.config.n_head))
        )

    @property
    def kv_head(self) -> Parts[HeadView]:
        count = self._trace.config.n_kv_head
        return Parts("kv_head", (HeadView(self._trace, self._block, k, "kv_head") for k in range(count)))

    def __repr__(self) -> str:
        return f"block {self._block}: {', '.join(block_names(self._trace.config))}, and its heads"

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._trace.read(f"block.{self._block}.{dotted(name)}")

    def __dir__(self) -> list[str]:
        return ["head", "kv_head", *(name.replace(".", "_") for name in block_names(self._trace.config))]


def dotted(name: str) -> str:
    """An attribute's name as a site's: normed_scale is normed.scale."""
    return re.sub(r"_(mean|scale)$", r".\1", name)


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
        if self._kind != "head":
            raise UserError("a shared head looks nowhere by itself: ask one of the heads that share it")
        places = trace.check_position(looking), trace.check_position(looked_at)
        with torch.set_grad_enabled(trace.grad):
            return why(trace, self._block, self._head, *places)

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.read(name)

    def __dir__(self) -> list[str]:
        return ["read", "why", *self._names]

    def __repr__(self) -> str:
        return f"block {self._block}, {self._kind} {self._head}: {', '.join(self._names)}"

    @property
    def _names(self) -> tuple[str, ...]:
        return head_names(self._trace.config) if self._kind == "head" else SHARED
