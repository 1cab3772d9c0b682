"""The training loop as an iterator of step records. Saving, sampling and plotting are up to the caller."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.networks import Learner, Network
from clearhead.runtime.process_group import ProcessGroup, local_shard
from clearhead.text.batches import BatchSource
from clearhead.training.recipe import Recipe, initialize_states, make_optimizers
from clearhead.training.step import TrainingStep

DIVERGED = "loss or gradients are no longer finite: lower the learning rate, or change the seed"


@dataclass(frozen=True)
class StepRecord:
    """The result of one training step."""

    step: int  # steps done, this one included
    loss: float
    gradient_norm: float
    lr_scale: float  # multiplies the full learning rate
    learning_rate: float  # of the matrices, at this step
    tokens: int  # processed so far
    seconds: float  # duration of this step
    skipped: bool = False  # because loss or gradients were not finite


class Trainer:
    """Runs `recipe.steps` training steps, synchronized with all ranks, and yields a record after each."""

    def __init__(
        self,
        network: Learner,
        batches: BatchSource,
        recipe: Recipe,
        group: ProcessGroup | None = None,
        sharded: bool = False,
        teachers: Sequence[Network] = (),
    ) -> None:
        assert batches.batch_size == recipe.batch_size
        self.group = group or ProcessGroup()
        self.group.check_batch(recipe.batch_size, recipe.accumulation)
        self.network, self.batches, self.recipe = network, batches, recipe
        self.device = next(network.parameters()).device
        module = self.group.wrap(network, sharded)  # averages gradients over ranks
        self.optimizers = make_optimizers(network, recipe)
        for optimizer in self.optimizers:
            initialize_states(optimizer)
        self.training_step = TrainingStep(network, module, self.optimizers, recipe, self.group, teachers)
        self.step = 0
        self._batch: tuple[int, Tensor | None] = (
            0,
            None,
        )  # prefetched: the step it belongs to, and the batch
        self.asking = 0.0  # seconds that the teachers took for batches that repeat
        self.slowdown = 1.0  # learning-rate multiplier, lowered after divergence
        self.lr_scales: Mapping[int, float] = {}  # of repeated steps whose schedule has been adjusted since

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes: trainable weights and optimizer state."""
        tensors: dict[str, Tensor] = {f"network.{name}": parameter for name, parameter in self._trainable()}
        for number, optimizer in enumerate(self.optimizers):
            for i, parameter in enumerate(_parameters(optimizer)):
                for key, value in optimizer.state[parameter].items():
                    tensors[f"optimizer.{number}.{i}.{key}"] = torch.as_tensor(value)
        return tensors

    @torch.no_grad()
    def restore(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Restore the state of a step. For sharded tensors, this rank's shard is enough."""
        own_tensors = self.tensors()
        if missing := next((name for name in own_tensors if name not in tensors), None):
            raise UserError(
                f"the checkpoint of step {step} was written by a different version of clearhead (it has no {missing}): "
                "resume with that version, or start over in another folder"
            )
        self.step = step
        for name, own in own_tensors.items():
            local_shard(own).copy_(local_shard(tensors[name]))

    def _trainable(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters that are not frozen."""
        return (named for named in self.network.named_parameters() if named[1].requires_grad)

    def __iter__(self) -> Iterator[StepRecord]:
        self.network.train()
        while self.step < self.recipe.steps:
            yield self.take_step()

    def take_step(self) -> StepRecord:
        start = time.perf_counter()
        start += self.ask_teachers()
        lr_scale = self.lr_scale()
        loss, norm = self._forward_backward(lr_scale)
        # An update with non-finite gradients would destroy the weights: skip it.
        skipped = not (np.isfinite(loss) and np.isfinite(norm))
        if not skipped:
            self.training_step.update()
        self.step += 1
        tokens = self.step * self.recipe.batch_size * self.batches.n_context
        rate = self.recipe.main_rate * lr_scale
        return StepRecord(self.step, loss, norm, lr_scale, rate, tokens, time.perf_counter() - start, skipped)

    def ask_teachers(self) -> float:
        """Let the teachers, if any, read the batch of this step; return the seconds it took if batches repeat, else 0.

        Only then is the time counted separately from the step, since later steps do not need the teachers.
        """
        if not self.training_step.teachers:
            return 0.0
        began, number = time.perf_counter(), self._batch_number(self.step)
        asked = self.training_step.ask_teachers(self.take_batch(), number, self._seed_of(number))
        if not asked or not self.recipe.repeat_after:
            return 0.0
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        seconds = time.perf_counter() - began
        self.asking += seconds
        return seconds

    def asking_left(self) -> float:
        """The seconds that the teachers still need, if batches repeat."""
        known = len(self.training_step.predictions)
        unknown = min(self.recipe.repeat_after - known, self.recipe.steps - self.step)
        return max(0, unknown) * self.asking / known if known else 0.0

    def lr_scale(self) -> float:
        """The learning-rate multiplier of the next step."""
        return self.lr_scales.get(self.step, self.recipe.lr_scale(self.step) * self.slowdown)

    @property
    def step_seed(self) -> int:
        """The seed of dropout and, without teachers, of token noise."""
        return self._seed_of(self.step)

    def _seed_of(self, step: int) -> int:
        """Like the batch, it depends only on the recipe's seed, the step, and the rank, since each rank has its own
        rows.
        """
        return self.recipe.seed * 1_000_003 + step + (self.group.rank << 48)

    def _forward_backward(self, lr_scale: float) -> tuple[float, float]:
        """Compute this step's gradients; return loss and gradient norm."""
        metrics = self.training_step.forward_backward(self.take_batch(), self.step_seed, lr_scale)
        self._batch = self.step + 1, self._stage(self.step + 1)  # prefetch while the device computes
        loss, norm = metrics.tolist()
        return self.group.sum(loss) / self.group.world_size, norm

    def set_up(self) -> None:
        """Do the one-time work of the first step in advance."""
        self.network.train()
        self.training_step.set_up(self.take_batch())

    def take_batch(self) -> Tensor:
        """This step's batch, usually prefetched."""
        step, batch = self._batch
        return batch if step == self.step and batch is not None else self._stage(self.step)

    def _batch_number(self, step: int) -> int:
        """The number of the batch that a step uses: a new one for each step, unless a student's batches repeat."""
        return step % self.recipe.repeat_after if self.recipe.repeat_after else step

    def _stage(self, step: int) -> Tensor:
        number = self._batch_number(step)
        return self.training_step.stage(self.batches.at(number, self.group.rank, self.group.world_size))


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
