"""Blocks and heads of a trace as objects with their sites as attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import ScoreAttribution, attribute_score
from clearhead.inspect.indexing import Selection, check_index
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.sites import SHARED, block_names, dotted, head_names

T = TypeVar("T")


class Parts(list[T]):
    """Blocks or heads by number; an error for a missing one names the valid range."""

    def __init__(self, what: str, parts: Iterable[T]) -> None:
        super().__init__(parts)
        self.what = what

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return super().__getitem__(number)
        return super().__getitem__(check_index(number, len(self), self.what))


class BlockView:
    """A block of a trace: its sites as attributes (with _ for a dot in a name), and its heads."""

    def __init__(self, trace: ResidualTrace, block: int) -> None:
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
        if name.startswith("_"):
            raise AttributeError(name)
        return self._trace.read(f"block.{self._block}.{dotted(name)}")

    def __dir__(self) -> list[str]:
        return ["head", "kv_head", *(name.replace(".", "_") for name in block_names(self._trace.config))]


class HeadView:
    """A head of a trace: its steps as attributes or, with `read`, selected rows and columns."""

    def __init__(self, trace: ResidualTrace, block: int, head: int, kind: str = "head") -> None:
        self._trace, self._block, self._head, self._kind = trace, block, head, kind

    def read(self, name: str, rows: Selection = None, columns: Selection = None) -> Tensor:
        return self._trace.read(f"block.{self._block}.{self._kind}.{self._head}.{name}", rows, columns)

    def why(self, query_position: int, key_position: int, *, against: int | None = None) -> ScoreAttribution:
        """Explain a score: decompose it by what each component wrote before this block.

        The scales of the norms at both positions are treated as constants; the parts sum to the score. With
        `against`, another key position, they sum to the difference between the two scores. Only differences
        within a row matter to the softmax; what is the same for both keys, such as the bias, cancels out.
        """
        trace = self._trace
        trace.check_single()
        if self._kind != "head":
            raise UserError("a key-value head has no scores of its own: use a head that shares it")
        query_position = trace.check_position(query_position)
        key_position = trace.check_position(key_position)
        if against is not None:
            against = trace.check_position(against)
        with torch.set_grad_enabled(trace.grad):
            return attribute_score(trace, self._block, self._head, query_position, key_position, against)

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.read(name)

    def __dir__(self) -> list[str]:
        return ["read", "why", *self._names]

    def __repr__(self) -> str:
        return f"block {self._block}, {self._kind} {self._head}: {', '.join(self._names)}"

    @property
    def _names(self) -> tuple[str, ...]:
        return head_names(self._trace.config) if self._kind == "head" else SHARED
