"""What one step of training does on the device: gather a batch's gradients, then change the weights.

On CUDA both are recorded and replayed, and all that they read lies in places that stay: the batch, what a
target weighs, the rates. Between the two the CPU looks whether the numbers are finite, once a step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.model.transformer import Transformer
from clearhead.networks import Learner
from clearhead.runtime.cuda_graph import CudaGraph, compiled
from clearhead.runtime.process_group import ProcessGroup, averaging, whole
from clearhead.training.chunked_loss import chunked_loss, is_large
from clearhead.training.objective import count_targets, cross_entropy, half_precision
from clearhead.training.recipe import Recipe

Work = Callable[[], None]


class TrainingStep:
    """`module` is the network, as its workers call it."""

    def __init__(
        self,
        network: Learner,
        module: nn.Module,
        optimisers: list[torch.optim.Optimizer],
        recipe: Recipe,
        workers: ProcessGroup,
    ) -> None:
        self.network, self.module, self.optimisers = network, module, optimisers
        self.recipe, self.workers = recipe, workers
        self.device = next(network.parameters()).device
        groups = [group for each in optimisers for group in each.param_groups]
        self.rates = [(group, float(group["lr"])) for group in groups]  # as they are in full
        alone = workers.count == 1 and isinstance(network, Transformer)
        self.recording = CudaGraph(self.device) if self.device.type == "cuda" and alone else None
        self.replay: tuple[Work, Work] | None = None  # of the gathering and of the update, once recorded
        self.weight = torch.ones((), device=self.device)  # of a target in the loss
        self.batch = torch.empty(0)  # inputs and targets, 2 B T
        self.told = torch.empty(2)  # the loss of this worker's rows, and the norm of the gradient

    def stage(self, inputs: np.ndarray, targets: np.ndarray) -> Tensor:
        """A batch on its way to the device."""
        batch = torch.from_numpy(np.stack((inputs, targets)))
        return batch if self.recording is None else batch.pin_memory()

    def set_up(self, batch: Tensor) -> None:
        """Record both halves, where that is done, for batches of this shape. No weight changes."""
        if self.recording is None or self.replay is not None:
            return
        self.batch = batch.to(self.device)
        with compiled(self.network.blocks) if self.recipe.compiled else nullcontext():
            gather = self.recording.record(self._gather, warm_up=self._gather)
        self.replay = gather, self.recording.record(self._update)

    def gather(self, batch: Tensor, seed: int, rate: float) -> Tensor:
        """The gradients of the whole batch's mean loss, clipped; told are the loss and their norm.

        What comes by chance comes from the seed. The update is to be at this share of the full rates.
        """
        targeted = self.workers.add(count_targets(batch[1].numpy()))
        self.set_up(batch)
        with self._running():
            # The mean over the workers is to be the sum over all rows, each target weighing the same.
            self.weight.fill_(self.workers.count / max(1, targeted))
            torch.manual_seed(seed)
            if self.replay is None:
                self.batch = batch.to(self.device)
                self._gather()
            else:
                self.batch.copy_(batch, non_blocking=True)
                self.replay[0]()
            self._set_rates(rate)
        return self.told

    def update(self) -> None:
        """Change the weights as the gradients say."""
        with self._running():
            (self._update if self.replay is None else self.replay[1])()

    def _running(self) -> AbstractContextManager[None]:
        return nullcontext() if self.recording is None else self.recording.running()

    def _set_rates(self, share: float) -> None:
        for group, full in self.rates:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(full * share)
            else:
                group["lr"] = full * share

    def _gather(self) -> None:
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        parts, total = self.recipe.accumulation, torch.zeros((), device=self.device)
        for i, (inputs, targets) in enumerate(self.batch.chunk(parts, dim=1)):
            with averaging(self.module, i == parts - 1):
                with half_precision(self.device, self.recipe.bfloat16):
                    loss = self._loss(self._noisy(inputs), targets)
                loss.backward()  # type: ignore[no-untyped-call]
            total = total + loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.told = torch.stack((total, whole(norm)))

    def _noisy(self, inputs: Tensor) -> Tensor:
        """Some of the words that are read changed into others, by chance."""
        if not self.recipe.noise:
            return inputs
        others = torch.randint_like(inputs, self.network.config.n_vocab)
        return torch.where(torch.rand(inputs.shape, device=inputs.device) < self.recipe.noise, others, inputs)

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Of these rows, each target weighing the same in the whole batch."""
        network = self.network
        if self.recording is None or not isinstance(network, Transformer) or not is_large(network, inputs):
            return cross_entropy(self.module(inputs), targets, "sum") * self.weight
        return chunked_loss(network, inputs, targets, self.weight, self.recipe.compiled)

    def _update(self) -> None:
        for optimiser in self.optimisers:
            optimiser.step()
