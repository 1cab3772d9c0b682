"""Sight: what the positions of a batch know of each other.

Shapes: B sequences, T positions that look, S positions that are looked at, H heads, D features a head.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def matrix(self, T: int, device: torch.device) -> Tensor | None:
        """True where the first may look at the second, in a form that can be looked at: … T T."""
        return triangle(T, T, device) if self.causal else self.visible


def triangle(T: int, S: int, device: torch.device | None = None) -> Tensor:
    """The last T of S positions, each seeing itself and what came before: T S, true where visible."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)
