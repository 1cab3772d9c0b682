"""One training step, with every number in it: losses, gradients, updates, and the model after the step.

Shapes: B sequences, T positions.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.indexing import check_index
from clearhead.inspect.sites import Site, parse_site
from clearhead.inspect.weights import weight, weight_names
from clearhead.language_model import LanguageModel
from clearhead.lessons.chain_rule import Chain, ChainRule
from clearhead.lessons.gradients import Gradients
from clearhead.lessons.recorder import Loss, Recorder, without_adapters
from clearhead.lessons.target_parts import target_parts
from clearhead.lessons.token_parts import TokenParts
from clearhead.lessons.update import Update, explain_update
from clearhead.lessons.weight_rule import weight_rule
from clearhead.model.transformer import Transformer
from clearhead.summary_table import plural
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED
from clearhead.training.distillation import position_losses
from clearhead.training.recipe import initialize_states, make_optimizers
from clearhead.training.step import TrainingStep
from clearhead.training.trainer import Trainer

UNCLIPPED = 1e38  # a gradient norm that is never reached


class Lesson:
    """The next step of a trainer, computed but not taken: the trainer's weights do not change."""

    def __init__(
        self, trainer: Trainer, tokenizer: Tokenizer, name: str, single: bool = False, is_exact: bool = True
    ) -> None:
        """`is_exact` is false if the trainer's optimizer state is not that of the run."""
        assert isinstance(trainer.network, Transformer)
        self.is_exact = is_exact
        self.trainer, self.tokenizer, self.name, self.single = trainer, tokenizer, name, single
        self.network = trainer.network
        step = trainer.training_step
        step.graph, recorder = None, Recorder(self.network)  # no CUDA graph is captured for one step
        device = trainer.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.enable_grad():
            step.module, step.recipe = recorder, replace(trainer.recipe, clip=UNCLIPPED)
            self.network.train()
            try:
                trainer.ask_teachers()
                metrics = step.forward_backward(trainer.take_batch(), trainer.step_seed, trainer.lr_scale())
            finally:
                step.module, step.recipe = self.network, trainer.recipe
                self.network.eval()
        self.loss, self.gradient_norm = metrics.tolist()
        self.target_ids = step.batch[1]  # B T
        # The predictions of a student's teachers, B T V.
        self.predicted = step.prediction.probabilities if step.teachers else None
        shares = (self.predicted, trainer.recipe.true_share)
        self.gradient = Gradients(
            self.network, recorder.gradients(self.target_ids, step.weight.clone(), *shares), single
        )
        self.ids = self.gradient.ids  # B T; as read, with token noise

    @property
    def number(self) -> int:
        """The number of the step in its run, counted from 1 as in the metrics."""
        return self.trainer.step + 1

    @property
    def learning_rate(self) -> float:
        """The learning rate of the matrices at this step."""
        return self.trainer.recipe.main_rate * self.trainer.lr_scale()

    @cached_property
    @torch.no_grad()
    def losses(self) -> Tensor:
        """-ln P(target) at each position, B T, or T for one text.

        NaN where there is no target: at the last token of a text, at padding and, in a bidirectional model, at every
        token that is not masked. `losses.nanmean()` is the loss. In the step of a student, the loss is in part the
        cross-entropy with its teachers' predictions.
        """
        logits = self.gradient.site_value(Site("logits")).float()
        found = position_losses(logits, self.target_ids, self.predicted, self.trainer.recipe.true_share)
        found = found.masked_fill(self.target_ids == IGNORED, math.nan)
        return found[0] if self.single else found

    @property
    def model(self) -> LanguageModel:
        """The model before the step."""
        return LanguageModel(without_adapters(self.network), self.tokenizer, name=self.name)

    @cached_property
    def texts(self) -> list[list[str]]:
        """The text of each token of the batch."""
        return [self.tokenizer.pieces(row) for row in self.ids.tolist()]

    @cached_property
    def target_texts(self) -> list[list[str | None]]:
        """The text of each position's target; None where there is none."""
        return [
            [None if i == IGNORED else self.tokenizer.pieces([i])[0] for i in row]
            for row in self.target_ids.tolist()
        ]

    def __repr__(self) -> str:
        rows = plural(len(self.ids), "text")
        return f"Lesson(step {self.number}: {rows} of {self.ids.shape[1]} tokens, loss {self.loss:.4f})"

    def value(self, site: str) -> Tensor:
        """The value of a site in this step's forward pass, with its dropout."""
        return self.gradient.value(site)

    def chain(self, name: str, row: int, column: int | None = None, text: int = 0) -> Chain:
        """The gradient of one number of a site or a weight by the chain rule; a vector has no column.

        It is a sum over the numbers that are computed from this one. For a weight, these are numbers of one text, and
        `others` is what the other texts of the batch add.
        """
        if any(part.forward.dropout for part in self.gradient.parts):
            raise UserError(
                "this step has dropout, for which the chain rule is not available: pass the batch's text to ch.learn, "
                "which uses no dropout"
            )
        index = _check_place(name, self.gradient.shape(name), row, column)
        text = check_index(text, len(self.ids), "text")
        rule = ChainRule(self.gradient, text)
        if name not in weight_names(self.network.config):
            return rule.explain(parse_site(name, self.network.config), index)
        found = weight_rule(rule, name, index)
        value, gradient = weight(self.network, name)[index].item(), self.gradient[name][index].item()
        parts = self._position_parts(name, index).double()
        others = (parts.sum() - parts[text].sum()).item()
        return Chain(name, index, value, gradient, found.kind, rule.terms(found), others, len(self.ids) - 1)

    def update(self, name: str) -> Update:
        """What the step does to a weight, term by term: gradient, clipping, momentum, …, weight decay."""
        weight(self.network, name)  # raises an error for an unknown name
        return explain_update(name, self.trainer, self._after)

    def tokens(self, name: str, row: int, column: int | None = None, by: str = "position") -> TokenParts:
        """What each token of the batch adds to one number of a weight's gradient; a vector has no column.

        By position, a part is what the use of the weight at that position adds, for all losses. By target, it is
        what the loss of that position's target adds, through all uses of the weight. Both sum to the gradient.
        """
        if by not in ("position", "target"):
            raise UserError(f"by = {by!r}: expected position or target")
        index = _check_place(name, list(weight(self.network, name).shape), row, column)
        values = self._target_parts(name, index) if by == "target" else self._position_parts(name, index)
        return TokenParts(name, values, self.texts, self.target_texts)

    def _position_parts(self, name: str, index: tuple[int, ...]) -> Tensor:
        """The contribution of each position to the gradient of one number of a weight: B T."""
        return self.gradient.weight_parts(name, None if len(index) == 1 else index[0], index[-1])

    def _target_parts(self, name: str, at: tuple[int, ...]) -> Tensor:
        step, parts, found = self.trainer.training_step, self.gradient.parts, []
        taught = [None] * len(parts) if self.predicted is None else self.predicted.chunk(len(parts))
        for part, rows, own in zip(parts, step.batch.chunk(len(parts), dim=1), taught, strict=True):
            documents = rows[2] if len(rows) > 2 else None
            loss = Loss(rows[1], step.weight, own, self.trainer.recipe.true_share)
            found.append(target_parts(part.forward, documents, loss, name, at))
        return torch.cat(found)

    def apply(self) -> LanguageModel:
        """The model after the step."""
        network = self._after.network
        assert isinstance(network, Transformer)
        return LanguageModel(copy.deepcopy(without_adapters(network)), self.tokenizer, name=self.name)

    def step(self, count: int = 1) -> Lesson:
        """The lesson of the step that comes this many steps later."""
        if type(count) is not int or count < 1:
            raise UserError(f"count = {count!r}: expected an integer of at least 1")
        trainer = fork(self._after)
        for _ in range(count - 1):
            trainer.network.train()
            with torch.random.fork_rng([]):
                trainer.take_step()
        return Lesson(trainer, self.tokenizer, self.name, self.single)

    @cached_property
    def _after(self) -> Trainer:
        """The trainer after the step. Its gradients are the clipped ones."""
        if not self.is_exact:
            raise UserError(
                f"the optimizer state before step {self.number} was not kept, only a snapshot of the weights: the "
                "step's update is not known; pass a larger `repeat` to repeat the steps before it"
            )
        trainer = fork(self.trainer)
        for own, copied in zip(self.network.parameters(), trainer.network.parameters(), strict=True):
            copied.grad = None if own.grad is None else own.grad.clone()
        torch.nn.utils.clip_grad_norm_(trainer.network.parameters(), trainer.recipe.clip)
        trainer.training_step.set_learning_rates(trainer.lr_scale())
        if math.isfinite(self.loss) and math.isfinite(self.gradient_norm):
            trainer.training_step.update()
        trainer.step += 1
        return trainer


def _check_place(name: str, shape: list[int], row: int, column: int | None) -> tuple[int, ...]:
    """The index of one number in a matrix, or in a vector, which has no columns."""
    if (column is None) != (len(shape) == 1):
        expected = "a row and a column" if column is None else "one index"
        raise UserError(f"{name} is {'×'.join(map(str, shape))}: expected {expected}")
    first = check_index(row, shape[0], "row")
    return (first,) if column is None else (first, check_index(column, shape[1], "column"))


def fork(trainer: Trainer) -> Trainer:
    """A trainer in the same state, with copies of the weights and the optimizer state."""
    copied, recipe = copy.copy(trainer), trainer.recipe
    copied.network = copy.deepcopy(trainer.network)
    copied.optimizers = make_optimizers(copied.network, recipe)
    for optimizer in copied.optimizers:
        initialize_states(optimizer)
    step = trainer.training_step
    copied.training_step = TrainingStep(
        copied.network, copied.network, copied.optimizers, recipe, trainer.group, step.teachers
    )
    copied.training_step.graph, copied.training_step.predictions = None, step.predictions
    copied.restore(trainer.step, trainer.tensors())
    return copied
