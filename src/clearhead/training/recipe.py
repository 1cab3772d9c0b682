"""How a network is trained: every number of the recipe, the optimisers it means, the rate at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.networks import Learner
from clearhead.training.muon import Muon, first_state

RECIPES = ("fast", "classic")  # ours; and nanoGPT's, to compare with
OPTIMIZERS = ("muon", "adamw")
CURVES = ("linear", "cosine")


@dataclass(frozen=True)
class Recipe:
    """Counts are of optimiser steps; a step's batch may be gathered from several smaller ones."""

    steps: int
    batch_size: int
    accumulation: int = 1
    name: str = "fast"
    optimiser: str = "muon"
    learning_rate: float = 0.01  # AdamW's: of embeddings and vectors, and of matrices unless Muon has them
    matrix_rate: float = 0.03  # Muon's
    momentum: float = 0.95  # likewise
    even_rows: bool = False  # whether Muon makes rows equally long too
    beta2: float = 0.95  # how long AdamW remembers squared gradients
    weight_decay: float = 0.1  # of matrices; vectors are not decayed
    decay_embeddings: bool = False
    noise: float = 0.0  # the share of the words read that are changed into others by chance
    warmup: int = 20
    curve: str = "linear"  # on which the rate comes down
    final_rate: float = 0.0  # the share of it that is left at the end
    clip: float = 1.0
    bfloat16: bool = False
    compiled: bool = False  # the blocks, for CUDA, which takes seconds once
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
        for name, known in (("name", RECIPES), ("optimiser", OPTIMIZERS), ("curve", CURVES)):
            if getattr(self, name) not in known:
                raise UserError(f"{name} = {getattr(self, name)!r}: expected one of {', '.join(known)}")
        for name in ("beta2", "momentum", "final_rate", "noise"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} = {getattr(self, name)}: expected at least 0 and below 1")
        for name in ("learning_rate", "matrix_rate", "clip"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name} = {getattr(self, name)}: expected a number above 0")

    def rate(self, step: int) -> float:
        """The share of the full learning rate at a step: up over the warm-up, then down to the final one."""
        if self.curve == "linear":
            warm = min(1.0, (step + 1) / max(1, self.warmup))
            return warm * (1 - (1 - self.final_rate) * step / self.steps)
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * done)) / 2


def make_states(optimiser: torch.optim.Optimizer) -> None:
    """What the optimiser remembers of each parameter, as it is before the first step, which it would make."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            state = optimiser.state[parameter]
            if isinstance(optimiser, Muon):
                state.update(first_state(parameter, group["even_rows"]))
            else:
                state["step"] = torch.zeros((), device=parameter.device if group["fused"] else None)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)


def make_optimizers(network: Learner, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Matrices are decayed, and Muon's if it is asked for; vectors are AdamW's, and so are embeddings."""
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    tables.add(id(network.unembedding.weight))
    plain: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    for parameter in network.parameters():
        if not parameter.requires_grad:
            continue
        is_matrix = parameter.ndim == 2 and (recipe.decay_embeddings or id(parameter) not in tables)
        (matrices if is_matrix else plain).append(parameter)
    groups = [{"params": plain, "weight_decay": 0.0}]
    if recipe.optimiser == "adamw":
        groups.append({"params": matrices, "weight_decay": recipe.weight_decay})
    groups = [group for group in groups if group["params"]]
    device = network.embedding.weight.device
    rate, matrix_rate = _rate(recipe.learning_rate, device), _rate(recipe.matrix_rate, device)
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(
            groups,
            lr=rate,
            betas=(0.9, recipe.beta2),
            fused=device.type in ("cpu", "cuda"),
            capturable=device.type == "cuda",
        )
    ]
    if recipe.optimiser == "muon":
        optimisers.append(
            Muon(
                matrices,
                lr=matrix_rate,
                momentum=recipe.momentum,
                weight_decay=recipe.weight_decay,
                even_rows=recipe.even_rows,
            )
        )
    return optimisers


def _rate(rate: float, device: torch.device) -> float | Tensor:
    """What is recorded reads its rate from the device, where each step puts it."""
    return torch.tensor(rate, device=device) if device.type == "cuda" else rate
