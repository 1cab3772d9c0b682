"""One training step on the device: forward and backward over a batch, then the optimizer update.

On CUDA, a transformer in a single process captures both as CUDA graphs, whose inputs (batch, loss weight, learning
rates) keep their addresses. Between the two, the CPU checks once per step whether loss and gradient norm are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.model.transformer import Transformer
from clearhead.networks import Learner, Network
from clearhead.runtime.cuda_graph import CudaGraph, compiled
from clearhead.runtime.process_group import ProcessGroup, full_tensor, gradient_sync
from clearhead.text.batches import Batch
from clearhead.training.chunked_loss import chunked_loss, is_large
from clearhead.training.distillation import distillation_loss, mean_prediction
from clearhead.training.objective import autocast, count_targets, cross_entropy
from clearhead.training.recipe import Recipe

Work = Callable[[], None]


class _Prediction(NamedTuple):
    """What the teachers predict for noisy inputs: B T, and B T V in float16."""

    inputs: Tensor
    probabilities: Tensor

    def copy_(self, other: _Prediction) -> None:
        for own, new in zip(self, other, strict=True):
            own.copy_(new)

    def clone(self) -> _Prediction:
        return _Prediction(self.inputs.clone(), self.probabilities.clone())

    def chunk(self, parts: int) -> list[_Prediction]:
        both = zip(self.inputs.chunk(parts), self.probabilities.chunk(parts), strict=True)
        return [_Prediction(*each) for each in both]


class TrainingStep:
    """`module` is the network as wrapped for the process group."""

    def __init__(
        self,
        network: Learner,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        recipe: Recipe,
        group: ProcessGroup,
        teachers: Sequence[Network] = (),
    ) -> None:
        self.network, self.module, self.optimizers = network, module, optimizers
        self.teachers = teachers
        self.recipe, self.group = recipe, group
        self.device = next(network.parameters()).device
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        self.learning_rates = [(group, float(group["lr"])) for group in groups]  # at lr_scale = 1
        single_process = group.world_size == 1 and isinstance(network, Transformer)
        self.graph = CudaGraph(self.device) if self.device.type == "cuda" and single_process else None
        self.replay: tuple[Work, Work] | None = None  # forward_backward and update, once captured
        self.weight = torch.ones((), device=self.device)  # of one target in the loss
        self.batch = torch.empty(0)  # inputs, targets and, if there are several, documents: 2 B T or 3 B T
        self.metrics = torch.empty(2)  # the loss on this rank's rows, and the gradient norm
        # What a student learns from: the batch's inputs with token noise, and what the teachers predict for them.
        self.prediction = _Prediction(torch.empty(0), torch.empty(0))
        self.predictions: dict[int, _Prediction] = {}  # those of the batches that repeat
        self.replay_teachers: Work | None = None  # once captured

    def stage(self, batch: Batch) -> Tensor:
        """Stage a batch for the transfer to the device, in pinned memory for CUDA."""
        inputs, targets, documents = batch
        # Rows of one document each need no mask, but a CUDA graph needs the same shape for every batch.
        if documents is not None and (self.graph is not None or np.diff(documents).any()):
            staged = torch.from_numpy(np.stack((inputs, targets, documents)))
        else:
            staged = torch.from_numpy(np.stack((inputs, targets)))
        return staged if self.graph is None else staged.pin_memory()

    def set_up(self, batch: Tensor) -> None:
        """Capture the CUDA graphs for batches of this shape. Weights do not change."""
        if self.graph is None or self.replay is not None:
            return
        self.batch = batch.to(self.device)
        teachers = [each for each in self.teachers if isinstance(each, Transformer)]
        blocks = [block for each in (self.network, *teachers) for block in each.blocks]
        with compiled(blocks) if self.recipe.compiled else nullcontext():
            if self.teachers:
                self.replay_teachers = self.graph.capture(self._ask_teachers, warm_up=self._ask_teachers)
            forward_backward = self.graph.capture(self._forward_backward, warm_up=self._forward_backward)
        self.replay = forward_backward, self.graph.capture(self._update)

    def ask_teachers(self, batch: Tensor, number: int, seed: int) -> bool:
        """Before `forward_backward`, add token noise to the batch and let the teachers predict what follows.

        Return whether they had to predict it: `number` determines the batch and the seed of its noise, so if
        batches repeat, the predictions for an earlier batch with the same number are used.
        """
        self.set_up(batch)
        with self._running():
            known = self.predictions.get(number)
            if known is None:
                self._seed(seed)
                self._load(batch)
                (self.replay_teachers or self._ask_teachers)()
                if self.recipe.repeat_after:
                    self.predictions[number] = self.prediction.clone()
            elif self.replay_teachers is None:
                self.prediction = known
            else:
                self.prediction.copy_(known)
        return known is None

    def forward_backward(self, batch: Tensor, seed: int, lr_scale: float) -> Tensor:
        """Compute the clipped gradients of the batch's mean loss; return loss and gradient norm.

        `seed` determines dropout and, without teachers, token noise; `lr_scale` multiplies the learning rates
        of the update.
        """
        n_targets = self.group.sum(count_targets(batch[1].numpy()))
        self.set_up(batch)
        with self._running():
            # Averaged over ranks, the weighted losses yield the mean over all targets of the batch.
            self.weight.fill_(self.group.world_size / max(1, n_targets))
            self._seed(seed)
            self._load(batch)
            (self._forward_backward if self.replay is None else self.replay[0])()
            self.set_learning_rates(lr_scale)
        return self.metrics

    def update(self) -> None:
        """Apply the gradients to the weights."""
        with self._running():
            (self._update if self.replay is None else self.replay[1])()

    def _load(self, batch: Tensor) -> None:
        """Move a batch to the device."""
        if self.replay is None:
            self.batch = batch.to(self.device)
        else:
            self.batch.copy_(batch, non_blocking=True)

    def _seed(self, seed: int) -> None:
        if self.device.type == "cpu":
            # torch.manual_seed would also format a stack trace for each kind of device that is not initialized.
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def _running(self) -> AbstractContextManager[None]:
        return nullcontext() if self.graph is None else self.graph.running()

    def set_learning_rates(self, lr_scale: float) -> None:
        for group, full in self.learning_rates:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(full * lr_scale)
            else:
                group["lr"] = full * lr_scale

    def _forward_backward(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        parts, total = self.recipe.accumulation, torch.zeros((), device=self.device)
        all_taught = self.prediction.chunk(parts) if self.teachers else [None] * parts
        for i, (batch, taught) in enumerate(zip(self.batch.chunk(parts, dim=1), all_taught, strict=True)):
            with gradient_sync(self.module, i == parts - 1):
                with autocast(self.device, self.recipe.bfloat16):
                    loss = self._loss(*batch) if taught is None else self._student_loss(taught, *batch[1:])
                loss.backward()  # type: ignore[no-untyped-call]
            total = total + loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.metrics = torch.stack((total, full_tensor(norm)))

    @torch.no_grad()
    def _ask_teachers(self) -> None:
        """The teachers read what the student reads, token noise included, so that their predictions follow from it."""
        noisy = self._add_token_noise(self.batch[0])
        parts = self.recipe.accumulation
        documents = self.batch[2].chunk(parts) if len(self.batch) > 2 else [None] * parts
        with autocast(self.device, self.recipe.bfloat16):
            predicted = [
                mean_prediction(self.teachers, *each).half()
                for each in zip(noisy.chunk(parts), documents, strict=True)
            ]
        self.prediction = _Prediction(noisy, torch.cat(predicted))

    def _add_token_noise(self, inputs: Tensor) -> Tensor:
        """Replace a random subset of the input tokens with random tokens."""
        if not self.recipe.token_noise:
            return inputs
        others = torch.randint_like(inputs, self.network.config.n_vocab)
        return torch.where(
            torch.rand(inputs.shape, device=inputs.device) < self.recipe.token_noise, others, inputs
        )

    def _loss(self, inputs: Tensor, targets: Tensor, documents: Tensor | None = None) -> Tensor:
        """The loss on these rows, with equal weight per target across the whole batch."""
        network, inputs = self.network, self._add_token_noise(inputs)
        if self.graph is None or not isinstance(network, Transformer) or not is_large(network, inputs):
            return cross_entropy(self._logits(inputs, documents), targets, "sum") * self.weight
        return chunked_loss(network, inputs, targets, self.weight, self.recipe.compiled, documents=documents)

    def _student_loss(self, taught: _Prediction, targets: Tensor, documents: Tensor | None = None) -> Tensor:
        """The same for a student, which also learns from its teachers' predictions."""
        logits = self._logits(taught.inputs, documents)
        return distillation_loss(logits, targets, taught.probabilities, self.recipe.true_share) * self.weight

    def _logits(self, inputs: Tensor, documents: Tensor | None) -> Tensor:
        logits: Tensor = (
            self.module(inputs) if documents is None else self.module(inputs, documents=documents)
        )
        return logits

    def _update(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()
