"""Muon: momentum whose every update is a matrix with all its directions made equally long.

Keller Jordan's optimiser, here in float32 with matrices of one shape done together as a batch: torch's own
works one at a time and in bfloat16, which many processors only emulate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """For the matrices inside the blocks; embeddings and vectors want AdamW."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.03,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        steps: int = 5,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "steps": steps}
        )

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        for group in self.param_groups:
            for wide in _alike(group["params"]):
                self._step_alike(wide, group)

    def _step_alike(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        updates = []
        for matrix in matrices:
            gradient = matrix.grad
            assert gradient is not None
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            state["momentum"].lerp_(gradient, 1 - group["momentum"])
            update = gradient.lerp(state["momentum"], group["momentum"])
            updates.append(update if _is_wide(matrix) else update.T)
        for matrix, update in zip(matrices, orthogonalise(torch.stack(updates), group["steps"]), strict=True):
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            rows, columns = matrix.shape
            matrix.add_(
                update if _is_wide(matrix) else update.T, alpha=-group["lr"] * max(1, rows / columns) ** 0.5
            )


def orthogonalise(matrices: Tensor, steps: int) -> Tensor:
    """Push all singular values towards 1 by Newton-Schulz steps: N rows columns, rows ≤ columns."""
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        # The coefficients of a·x + b·x³ + c·x⁵ that climb fastest from near 0 and stay near 1.
        square = x @ x.mT.contiguous()  # the kernel for turned matrices is a third slower
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.775, alpha=2.0315), x, beta=3.4445)
    return x


def _is_wide(matrix: Tensor) -> bool:
    return matrix.shape[0] <= matrix.shape[1]


def _alike(matrices: list[Tensor]) -> Iterable[list[Tensor]]:
    """Those with a gradient, in lists of one shape, turned or not."""
    shapes: dict[tuple[int, ...], list[Tensor]] = {}
    for matrix in matrices:
        if matrix.grad is not None:
            shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
    return shapes.values()
