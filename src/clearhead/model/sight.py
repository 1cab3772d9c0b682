"""Sight: what the positions of a batch know of each other.

Shapes: B sequences, T positions that look, S positions that are looked at, H heads, D features a head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.model.position import Rotation


@dataclass(frozen=True)
class Sight:
    """Who may look at whom, and how far the queries and keys of each position are turned.

    `causal` is the plain lower triangle, for which fused kernels need no matrix; `visible` (B 1 T S) is for
    what is not so plain; with neither, all may be seen.
    """

    rotation: Rotation | None = None
    visible: Tensor | None = None
    causal: bool = False

    def within(self, window: int, T: int, S: int, device: torch.device) -> Sight:
        """The same, but the last T of S positions see only so many back, their own included."""
        if window >= S:
            return self
        near = triangle(T, S, device).triu(S - T - window + 1)
        return replace(self, visible=near if self.visible is None else near & self.visible, causal=False)

    def matrix(self, rows: Tensor, S: int) -> Tensor | None:
        """True where these positions may look at the S there are: … rows S. None where all may be seen."""
        if self.causal:
            return torch.arange(S, device=rows.device) <= rows[:, None]
        return None if self.visible is None else self.visible[..., rows, :]


def triangle(T: int, S: int, device: torch.device | None = None) -> Tensor:
    """The last T of S positions, each seeing itself and what came before: T S, true where visible."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)
