"""The training recipe: hyperparameters, optimizers, and the learning-rate schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.networks import Learner
from clearhead.training.muon import Muon, initial_state
from clearhead.training.optimizer import AdamW

RECIPES = ("fast", "classic")  # ours, and nanoGPT's for comparison
OPTIMIZERS = ("muon", "adamw")
SCHEDULES = ("linear", "cosine")


@dataclass(frozen=True)
class Recipe:
    """Steps are optimizer steps. With gradient accumulation, a batch is processed in several parts."""

    steps: int
    batch_size: int
    accumulation: int = 1  # parts of a batch whose gradients are accumulated
    name: str = "fast"
    optimizer: str = "muon"
    learning_rate: float = 0.01  # of AdamW: embeddings and vectors, and matrices without Muon
    matrix_rate: float = 0.03  # of Muon
    momentum: float = 0.95  # of Muon
    normalize_rows: bool = False  # NorMuon: equalize the row norms of Muon's updates
    beta2: float = 0.95  # AdamW's decay rate of squared gradients
    weight_decay: float = 0.1  # for matrices only; vectors are not decayed
    decay_embeddings: bool = False
    token_noise: float = 0.0  # fraction of input tokens replaced with random ones
    true_share: float = 1.0  # of the true target; the rest is what the teachers predict
    # A student's batches, with their noise, repeat after this many steps, so that its teachers' predictions for each
    # are computed only once; 0 means never.
    repeat_after: int = 0
    warmup: int = 20  # steps
    schedule: str = "linear"  # of the decay after warmup
    final_lr_scale: float = 0.0  # learning-rate multiplier at the end
    first_step: int = 0  # steps done before the schedule starts, if the run is extended
    clip: float = 1.0  # gradient norm
    bfloat16: bool = False
    compiled: bool = False  # compile the blocks (CUDA only; takes several seconds once)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulation"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} = {getattr(self, name)}: expected at least 1")
        if self.batch_size % self.accumulation != 0:
            raise UserError(
                f"a batch of {self.batch_size} cannot be split into {self.accumulation} equal parts: "
                "`accumulation` must divide `batch`"
            )
        for name, known in (("name", RECIPES), ("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in known:
                raise UserError(f"{name} = {getattr(self, name)!r}: expected one of {', '.join(known)}")
        for name in ("beta2", "momentum", "final_lr_scale", "token_noise"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} = {getattr(self, name)}: expected at least 0 and below 1")
        if self.repeat_after < 0:
            raise UserError(f"repeat_after = {self.repeat_after}: expected 0 or more")
        if not 0 <= self.true_share <= 1:
            raise UserError(f"true_share = {self.true_share}: expected 0 to 1")
        for name in ("learning_rate", "matrix_rate", "clip"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name} = {getattr(self, name)}: expected a number above 0")

    @property
    def main_rate(self) -> float:
        """The full learning rate of the matrices."""
        return self.matrix_rate if self.optimizer == "muon" else self.learning_rate

    def lr_scale(self, step: int) -> float:
        """The learning-rate multiplier at a step: warmup, then decay to `final_lr_scale`."""
        step, steps = step - self.first_step, self.steps - self.first_step
        if self.schedule == "linear":
            warm = min(1.0, (step + 1) / max(1, self.warmup))
            return warm * (1 - (1 - self.final_lr_scale) * step / steps)
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        done = (step - self.warmup) / max(1, steps - self.warmup)
        return self.final_lr_scale + (1 - self.final_lr_scale) * (1 + math.cos(math.pi * done)) / 2


def initialize_states(optimizer: torch.optim.Optimizer) -> None:
    """Create the optimizer state that the first step would otherwise create."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            if isinstance(optimizer, Muon):
                state.update(initial_state(parameter, group["normalize_rows"]))
            else:
                state["step"] = torch.zeros((), device=parameter.device if group["fused"] else None)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)


def make_optimizers(network: Learner, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for embeddings and vectors; Muon, or AdamW with weight decay, for matrices."""
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
    if recipe.optimizer == "adamw":
        groups.append({"params": matrices, "weight_decay": recipe.weight_decay})
    groups = [group for group in groups if group["params"]]
    device = network.embedding.weight.device
    learning_rate = _learning_rate(recipe.learning_rate, device)
    matrix_rate = _learning_rate(recipe.matrix_rate, device)
    optimizers: list[torch.optim.Optimizer] = [
        AdamW(
            groups,
            lr=learning_rate,
            betas=(0.9, recipe.beta2),
            fused=device.type in ("cpu", "cuda"),
            capturable=device.type == "cuda",
        )
    ]
    if recipe.optimizer == "muon":
        optimizers.append(
            Muon(
                matrices,
                lr=matrix_rate,
                momentum=recipe.momentum,
                weight_decay=recipe.weight_decay,
                normalize_rows=recipe.normalize_rows,
                bfloat16=recipe.bfloat16,
            )
        )
    return optimizers


def _learning_rate(rate: float, device: torch.device) -> float | Tensor:
    """The learning rate; on CUDA, a tensor, since a captured graph reads it from device memory."""
    return torch.tensor(rate, device=device) if device.type == "cuda" else rate
