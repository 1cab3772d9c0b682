"""The training loop, as an iterator of records. Saving, sampling and drawing are the caller's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.model.kinds import Learner
from clearhead.text.batches import Batches
from clearhead.training.objective import count_targets, half_precision, word_loss
from clearhead.training.recipe import Recipe, make_optimisers, make_states
from clearhead.training.workers import Workers, averaging, held, whole

BROKEN = "the numbers are no longer finite; a lower --learning-rate, or another --seed, may keep it whole"


@dataclass(frozen=True)
class Record:
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
        workers: Workers | None = None,
        sharded: bool = False,
    ) -> None:
        assert batches.batch_size == recipe.batch_size
        self.workers = workers or Workers()
        self.workers.check_share(recipe.batch_size, recipe.accumulation)
        self.network, self.batches, self.recipe = network, batches, recipe
        self.device = next(network.parameters()).device
        self.module = self.workers.spread(network, sharded)  # the network, and the averaging of gradients
        self.optimisers = make_optimisers(network, recipe)
        for optimiser in self.optimisers:
            make_states(optimiser)
        self.full_rates = [[group["lr"] for group in each.param_groups] for each in self.optimisers]
        self.step = 0
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
        self.step = step
        for name, own in self.tensors().items():
            held(own).copy_(held(tensors[name]))

    def _learning(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters that are not frozen."""
        return (named for named in self.network.named_parameters() if named[1].requires_grad)

    def __iter__(self) -> Iterator[Record]:
        self.network.train()
        while self.step < self.recipe.steps:
            yield self.take_step()

    def take_step(self) -> Record:
        start = time.perf_counter()
        # What dropout leaves out is, like the batch, a function of the seed and the step alone; and of the
        # worker, for each has other rows.
        torch.manual_seed(self.recipe.seed * 1_000_003 + self.step + (self.workers.number << 48))
        rate = self.recipe.rate(self.step) * self.slowdown
        for optimiser, full in zip(self.optimisers, self.full_rates, strict=True):
            for group, lr in zip(optimiser.param_groups, full, strict=True):
                group["lr"] = lr * rate
        inputs, targets = self.batches.at(self.step, self.workers.number, self.workers.count)
        loss = self._gather_gradients(inputs, targets)
        norm = whole(torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)).item()
        # Numbers that are not finite would spoil every weight: such a step changes none.
        skipped = not (np.isfinite(loss) and np.isfinite(norm))
        for optimiser in self.optimisers:
            if not skipped:
                optimiser.step()
            optimiser.zero_grad()
        self.step += 1
        tokens = self.step * inputs.size * self.workers.count
        return Record(self.step, loss, norm, rate, tokens, time.perf_counter() - start, skipped)

    def _gather_gradients(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Gradients of the whole batch's mean loss, one equal part of this worker's rows after the other."""
        parts, total, count = self.recipe.accumulation, 0.0, self.workers.count
        targeted = self.workers.add(count_targets(targets))
        for i, (some, aims) in enumerate(zip(np.split(inputs, parts), np.split(targets, parts), strict=True)):
            counted = count_targets(aims)
            with averaging(self.module, i == parts - 1):
                with half_precision(self.device, self.recipe.bfloat16):
                    logits = self.module(torch.from_numpy(some).to(self.device))
                if counted:
                    loss = word_loss(logits, torch.from_numpy(aims).to(self.device))
                    # The mean over the workers is to be the sum over all rows, each target weighing the same.
                    loss = loss / (targeted / counted / count)
                else:
                    loss = 0.0 * logits.sum()  # nothing to learn, but the others wait for its gradients
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return self.workers.add(total) / count


def _parameters(optimiser: torch.optim.Optimizer) -> Iterator[Tensor]:
    for group in optimiser.param_groups:
        yield from group["params"]
