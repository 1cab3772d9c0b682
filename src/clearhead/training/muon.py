"""Muon: momentum whose update matrices are orthogonalized; optionally NorMuon, which also normalizes rows.

Keller Jordan's optimizer. Matrices of the same shape are processed as a batch, whereas torch.optim.Muon works on one
at a time. Newton-Schulz runs in bfloat16 on CUDA, where float32 products are ten times slower, and on a CPU if the
other products of training do, since many CPUs only emulate bfloat16. NorMuon divides each row of an update by its
running RMS and preserves the norm of the whole update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from clearhead.training.optimizer import Optimizer

BETA2 = 0.95  # decay rate of the mean square of each row of the updates

# Receives the name of a stage of the update, the matrices, and the update of each matrix after that stage.
StageObserver = Callable[[str, list[Tensor], list[Tensor]], None]


class Muon(Optimizer):
    """For the matrices inside the blocks; use AdamW for embeddings and vectors. `lr` may be a tensor."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | Tensor = 0.03,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        steps: int = 5,
        normalize_rows: bool = False,
        bfloat16: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "steps": steps,
            "normalize_rows": normalize_rows,
            "bfloat16": bfloat16,
        }
        super().__init__(params, settings)

    @torch.no_grad()
    def step(self, closure: None = None, watch: StageObserver | None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        for group in self.param_groups:
            for matrices in by_shape(group["params"]):
                self._step_together(matrices, group, watch)

    def _step_together(
        self, matrices: list[Tensor], group: dict[str, Any], watch: StageObserver | None
    ) -> None:
        matrices = sorted(matrices, key=_is_tall)
        wide = sum(not _is_tall(matrix) for matrix in matrices)
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix].update(initial_state(matrix, group["normalize_rows"]))
        gradients: list[Tensor] = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        nesterov = torch._foreach_lerp(gradients, momenta, group["momentum"])
        batch = torch.stack([*nesterov[:wide], *(update.T for update in nesterov[wide:])])
        if batch.is_cuda or group["bfloat16"]:
            batch = batch.bfloat16()
        orthogonal = orthogonalize(batch, group["steps"]).to(matrices[0].dtype)
        as_wide, transposed = orthogonal[:wide], orthogonal[wide:]
        if group["normalize_rows"]:
            squares = [self.state[matrix]["square"] for matrix in matrices]
            as_wide = normalize_update_rows(as_wide, squares[:wide], dim=2)
            transposed = normalize_update_rows(transposed, squares[wide:], dim=1)
        updates = [*as_wide, *transposed.mT]
        if watch is not None:
            watch("nesterov", matrices, list(nesterov))
            watch("newton_schulz", matrices, [*orthogonal[:wide], *orthogonal[wide:].mT])
            watch("rows", matrices, updates)
        scales = [max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5 for matrix in matrices]
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_sub_(matrices, torch._foreach_mul(torch._foreach_mul(updates, scales), group["lr"]))


def initial_state(matrix: Tensor, normalize_rows: bool) -> dict[str, Tensor]:
    """The optimizer state of a matrix before the first step."""
    state = {"momentum": torch.zeros_like(matrix)}
    return {**state, "square": matrix.new_zeros(len(matrix))} if normalize_rows else state


def orthogonalize(matrices: Tensor, steps: int) -> Tensor:
    """Push all singular values toward 1 by Newton-Schulz steps: N rows columns, rows ≤ columns."""
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        # With these coefficients, a·x + b·x³ + c·x⁵ rises fast from near 0 and stays near 1.
        # On the CPU, the kernel for transposed matrices is a third slower.
        square = x @ (x.mT if x.is_cuda else x.mT.contiguous())
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.775, alpha=2.0315), x, beta=3.4445)
    return x


def normalize_update_rows(updates: Tensor, squares: list[Tensor], dim: int) -> Tensor:
    """Divide each row by the root of its running mean square, and preserve the norm of each matrix.

    Rows extend along `dim`. Updates `squares`, the running mean squares, in place.
    """
    if not squares:
        return updates
    torch._foreach_lerp_(squares, list(updates.square().mean(dim)), 1 - BETA2)
    normalized = updates * torch.stack(squares).clamp(min=1e-20).rsqrt().unsqueeze(dim)
    before, after = (part.norm(dim=(1, 2), keepdim=True) for part in (updates, normalized))
    return normalized * (before / after.clamp(min=1e-20))


def _is_tall(matrix: Tensor) -> bool:
    return matrix.shape[0] > matrix.shape[1]


def by_shape(matrices: list[Tensor]) -> Iterable[list[Tensor]]:
    """Matrices with a gradient, grouped by shape; a shape and its transpose count as the same."""
    shapes: dict[tuple[int, ...], list[Tensor]] = {}
    for matrix in matrices:
        if matrix.grad is not None:
            shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
    return shapes.values()
