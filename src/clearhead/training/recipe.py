"""How a network is trained: every number of the recipe, the optimisers it means, the rate at each step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from clearhead.errors import UserError
from clearhead.model.transformer import Transformer
from clearhead.training.muon import Muon

OPTIMISERS = ("muon", "adamw")


@dataclass(frozen=True)
class Recipe:
    """Counts are of optimiser steps; a step's batch may be gathered from several smaller ones."""

    steps: int
    batch_size: int
    accumulation: int = 1
    optimiser: str = "muon"
    learning_rate: float = 0.01  # AdamW's: of embeddings and vectors, and of matrices unless Muon has them
    matrix_rate: float = 0.03  # Muon's
    weight_decay: float = 0.1  # of matrices; vectors and embeddings are not decayed
    warmup: int = 20
    clip: float = 1.0
    bfloat16: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulation"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} = {getattr(self, name)}: expected at least 1")
        if self.batch_size % self.accumulation != 0:
            raise UserError(
                f"a batch of {self.batch_size} cannot be gathered in {self.accumulation} equal parts: "
                "accumulation must divide the batch"
            )
        if self.optimiser not in OPTIMISERS:
            raise UserError(f"optimiser = {self.optimiser!r}: expected one of {', '.join(OPTIMISERS)}")
        for name in ("learning_rate", "matrix_rate", "clip"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name} = {getattr(self, name)}: expected a number above 0")

    def rate(self, step: int) -> float:
        """The share of the full learning rate at a step: up over the warm-up, then straight down to 0."""
        return min(1.0, (step + 1) / max(1, self.warmup)) * (1 - step / self.steps)


def make_optimisers(network: Transformer, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Matrices are decayed, and Muon's if it is asked for; embeddings and vectors are AdamW's, undecayed."""
    tables = [module.weight for module in network.modules() if isinstance(module, nn.Embedding)]
    tables.append(network.unembedding.weight)
    plain: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    for parameter in network.parameters():
        if not parameter.requires_grad:
            continue
        is_matrix = parameter.ndim == 2 and not any(parameter is table for table in tables)
        (matrices if is_matrix else plain).append(parameter)
    groups = [{"params": plain, "weight_decay": 0.0}]
    if recipe.optimiser == "adamw":
        groups.append({"params": matrices, "weight_decay": recipe.weight_decay})
    groups = [group for group in groups if group["params"]]
    fused = network.embedding.weight.device.type in ("cpu", "cuda")
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95), fused=fused)
    ]
    if recipe.optimiser == "muon":
        optimisers.append(Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay))
    return optimisers
