"""The training loop, as an iterator of records. Saving, sampling and drawing are the caller's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.networks import Learner
from clearhead.runtime.process_group import ProcessGroup, held
from clearhead.text.batches import Batches
from clearhead.training.recipe import Recipe, make_optimizers, make_states
from clearhead.training.step import TrainingStep

BROKEN = "the numbers are no longer finite; a lower --learning-rate, or another --seed, may keep it whole"


@dataclass(frozen=True)
class StepRecord:
    """What one step did."""

    step: int  # steps done, this one included
    loss: float
    gradient_norm: float
    rate: float  # the share of the full learning rate
    tokens: int  # read so far
    seconds: float  # this step took
    skipped: bool = False  # because its numbers were not finite


class Trainer:
    """Takes `recipe.steps` steps, one each time it is asked for a record; so do all workers together."""

    def __init__(
        self,
        network: Learner,
        batches: Batches,
        recipe: Recipe,
        workers: ProcessGroup | None = None,
        sharded: bool = False,
    ) -> None:
        assert batches.batch_size == recipe.batch_size
        self.workers = workers or ProcessGroup()
        self.workers.check_share(recipe.batch_size, recipe.accumulation)
        self.network, self.batches, self.recipe = network, batches, recipe
        self.device = next(network.parameters()).device
        module = self.workers.spread(network, sharded)  # the network, and the averaging of gradients
        self.optimisers = make_optimizers(network, recipe)
        for optimiser in self.optimisers:
            make_states(optimiser)
        self.work = TrainingStep(network, module, self.optimisers, recipe, self.workers)
        self.step = 0
        self._batch: tuple[int, Tensor | None] = (0, None)  # the next step's, and its number
        self.slowdown = 1.0  # of the learning rate, after training broke

    def tensors(self) -> dict[str, Tensor]:
        """All that training changes: the weights it may, and what the optimisers remember of each."""
        tensors: dict[str, Tensor] = {f"network.{name}": each for name, each in self._learning()}
        for number, optimiser in enumerate(self.optimisers):
            for i, parameter in enumerate(_parameters(optimiser)):
                for key, value in optimiser.state[parameter].items():
                    tensors[f"optimiser.{number}.{i}.{key}"] = torch.as_tensor(value)
        return tensors

    @torch.no_grad()
    def restore(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Go back to, or on from, where these were taken; of sharded ones, this process's share is enough."""
        own_tensors = self.tensors()
        if lacking := next((name for name in own_tensors if name not in tensors), None):
            raise UserError(
                f"the checkpoint of step {step} is of another version of clearhead (it has no {lacking}): go "
                "on with that version, or begin anew in another folder"
            )
        self.step = step
        for name, own in own_tensors.items():
            held(own).copy_(held(tensors[name]))

    def _learning(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters that are not frozen."""
        return (named for named in self.network.named_parameters() if named[1].requires_grad)

    def __iter__(self) -> Iterator[StepRecord]:
        self.network.train()
        while self.step < self.recipe.steps:
            yield self.take_step()

    def take_step(self) -> StepRecord:
        start = time.perf_counter()
        rate = self.recipe.rate(self.step) * self.slowdown
        loss, norm = self._gather(rate)
        # Numbers that are not finite would spoil every weight: such a step changes none.
        skipped = not (np.isfinite(loss) and np.isfinite(norm))
        if not skipped:
            self.work.update()
        self.step += 1
        tokens = self.step * self.recipe.batch_size * self.batches.n_context
        return StepRecord(self.step, loss, norm, rate, tokens, time.perf_counter() - start, skipped)

    def _gather(self, rate: float) -> tuple[float, float]:
        """The step's gradients, for an update at this rate; their loss and norm are told."""
        # What dropout leaves out is, like the batch, a function of the seed and the step alone; and of the
        # worker, for each has other rows.
        seed = self.recipe.seed * 1_000_003 + self.step + (self.workers.number << 48)
        gathered = self.work.gather(self._take_batch(), seed, rate)
        self._batch = self.step + 1, self._stage(self.step + 1)  # while the device works
        loss, norm = gathered.tolist()
        return self.workers.add(loss) / self.workers.count, norm

    def set_up(self) -> None:
        """What the first step would take longer for."""
        self.network.train()
        self.work.set_up(self._take_batch())

    def _take_batch(self) -> Tensor:
        """This step's, which is there already unless it is the first."""
        step, batch = self._batch
        return batch if step == self.step and batch is not None else self._stage(self.step)

    def _stage(self, step: int) -> Tensor:
        return self.work.stage(*self.batches.at(step, self.workers.number, self.workers.count))


def _parameters(optimiser: torch.optim.Optimizer) -> Iterator[Tensor]:
    for group in optimiser.param_groups:
        yield from group["params"]
