"""What each token of a batch adds to one number of a weight's gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from clearhead.errors import UserError
from clearhead.summary_table import TableCell, html_table, text_table

SHOWN = 10


class TokenPart(NamedTuple):
    """The part of one position; gradient descent moves the number against its sign."""

    row: int
    position: int
    token: str
    target: str | None
    value: float


@dataclass(frozen=True, repr=False)
class TokenParts:
    """One part per position of the batch; they sum to the gradient."""

    name: str
    values: Tensor  # B T
    texts: list[list[str]]
    targets: list[list[str | None]]

    @property
    def total(self) -> float:
        return self.values.double().sum().item()

    def top(self, count: int = SHOWN) -> list[TokenPart]:
        """The positions with the largest parts."""
        if type(count) is not int or count < 1:
            raise UserError(f"count = {count!r}: expected an integer of at least 1")
        order = self.values.flatten().abs().argsort(descending=True)[:count].tolist()
        places = [divmod(i, self.values.shape[1]) for i in order]
        return [
            TokenPart(b, t, self.texts[b][t], self.targets[b][t], self.values[b, t].item()) for b, t in places
        ]

    def others(self, count: int = SHOWN) -> float:
        """The sum of all parts but those of `top`; with them, it is the gradient."""
        return self.total - math.fsum(part.value for part in self.top(count))

    def __repr__(self) -> str:
        rows: list[tuple[TableCell, ...]] = [
            (f"  {part.row}", part.position, repr(part.token), f"{part.value:+.4g}") for part in self.top(5)
        ]
        if self.values.numel() > len(rows):
            rows.append(("  others", None, "", f"{self.others(len(rows)):+.4g}"))
        return f"TokenParts({self._heading})\n{text_table((), rows)}"

    def _repr_html_(self) -> str:
        rows: list[tuple[TableCell, ...]] = [(*part[:-1], f"{part.value:+.4g}") for part in self.top()]
        if self.values.numel() > len(rows):
            rows.append(("others", None, None, None, f"{self.others():+.4g}"))
        return html_table(("row", "position", "token", "target", "part"), rows, self._heading)

    @property
    def _heading(self) -> str:
        return f"{self.name}: {self.total:.4g}, the sum of {self.values.numel():,} positions"
