"""Muon: momentum whose every update is a matrix with all its directions made equally long.

Keller Jordan's optimiser, here with matrices of one shape done together as a batch, where torch's own works
one at a time; in bfloat16 on CUDA, whose float32 products are ten times slower, and else in float32: many
processors only emulate bfloat16. Then, as in NorMuon and if asked for, the rows are made equally long too,
each by how long it was of late, and the whole stays as long as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

MEMORY = 0.95  # for the squared length of each row of the updates


class Muon(torch.optim.Optimizer):
    """For the matrices inside the blocks; embeddings and vectors want AdamW. The rate may be a tensor."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | Tensor = 0.03,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        steps: int = 5,
        even_rows: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "steps": steps,
            "even_rows": even_rows,
        }
        super().__init__(params, settings)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        for group in self.param_groups:
            for alike in _alike(group["params"]):
                self._step_alike(alike, group)

    def _step_alike(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        matrices = sorted(matrices, key=_is_tall)
        wide = sum(not _is_tall(matrix) for matrix in matrices)
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix].update(first_state(matrix, group["even_rows"]))
        gradients: list[Tensor] = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        batch = torch.stack([*ahead[:wide], *(each.T for each in ahead[wide:])])
        if batch.is_cuda:
            batch = batch.bfloat16()
        made = orthogonalize(batch, group["steps"]).to(matrices[0].dtype)
        as_wide, turned = made[:wide], made[wide:]
        if group["even_rows"]:
            squares = [self.state[matrix]["square"] for matrix in matrices]
            as_wide = normalize_rows(as_wide, squares[:wide], across=2)
            turned = normalize_rows(turned, squares[wide:], across=1)
        updates = [*as_wide, *turned.mT]
        reaches = [max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5 for matrix in matrices]
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_sub_(matrices, torch._foreach_mul(torch._foreach_mul(updates, reaches), group["lr"]))


def first_state(matrix: Tensor, even_rows: bool) -> dict[str, Tensor]:
    """What is remembered of a matrix, as it is before the first step."""
    state = {"momentum": torch.zeros_like(matrix)}
    return {**state, "square": matrix.new_zeros(len(matrix))} if even_rows else state


def orthogonalize(matrices: Tensor, steps: int) -> Tensor:
    """Push all singular values towards 1 by Newton-Schulz steps: N rows columns, rows ≤ columns."""
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        # The coefficients of a·x + b·x³ + c·x⁵ that climb fastest from near 0 and stay near 1.
        # On a processor the kernel for turned matrices is a third slower.
        square = x @ (x.mT if x.is_cuda else x.mT.contiguous())
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.775, alpha=2.0315), x, beta=3.4445)
    return x


def normalize_rows(updates: Tensor, squares: list[Tensor], across: int) -> Tensor:
    """Divide rows, which lie `across` this dimension, by how long each was of late; as long as before in all.

    What is known of that, a mean of squares for each row, is brought up to date.
    """
    if not squares:
        return updates
    torch._foreach_lerp_(squares, list(updates.square().mean(across)), 1 - MEMORY)
    made = updates * torch.stack(squares).clamp(min=1e-20).rsqrt().unsqueeze(across)
    length, now = (each.norm(dim=(1, 2), keepdim=True) for each in (updates, made))
    return made * (length / now.clamp(min=1e-20))


def _is_tall(matrix: Tensor) -> bool:
    return matrix.shape[0] > matrix.shape[1]


def _alike(matrices: list[Tensor]) -> Iterable[list[Tensor]]:
    """Those with a gradient, in lists of one shape, turned or not."""
    shapes: dict[tuple[int, ...], list[Tensor]] = {}
    for matrix in matrices:
        if matrix.grad is not None:
            shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
    return shapes.values()
