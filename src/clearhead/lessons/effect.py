"""What training steps do to a model: the losses before and after, and the weights that lower the loss most.

Shapes: B sequences, T positions, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.weights import weight, weight_names
from clearhead.language_model import LanguageModel
from clearhead.lessons.gradients import PRODUCTS
from clearhead.lessons.lesson import Lesson
from clearhead.lessons.text_lesson import make_batch
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED

SHOWN = 10


class ChangedWeight(NamedTuple):
    """How far a weight moves: the norm of its change, also relative to its own norm."""

    name: str
    change: float
    relative: float  # NaN if the weight was 0


class WeightEffect(NamedTuple):
    """What the change in a weight does to the loss, to first order: gradient × change, summed over its numbers."""

    name: str
    loss_change: float
    change: float  # the norm of the change
    relative: float  # the same, divided by the norm of the weight; NaN if the weight was 0


class MovedProbability(NamedTuple):
    """The probability of a token at a position, before and after the step."""

    position: int
    id: int
    before: float
    after: float


class LossChange(NamedTuple):
    before: float
    after: float


class StepLosses(NamedTuple):
    """The losses before and after one step."""

    loss: LossChange
    other: LossChange | None


@dataclass(frozen=True)
class StepEffect:
    """The effect of one or more steps on their own text and, if there is one, on another text."""

    loss: LossChange  # before the first and after the last step
    losses_before: Tensor  # before the first step, B T; NaN where there is no target
    losses: Tensor  # after the last step
    other: LossChange | None
    steps: list[StepLosses]  # of each step
    expected: float  # the change in the loss to first order: the sum of gradient × change over all weights
    weights: list[WeightEffect]  # their parts of it, summed over the steps; the largest fall first
    probabilities: list[MovedProbability]  # of the first text; the largest change first


@torch.no_grad()
def measure_effect(
    lesson: Lesson,
    other: Any = None,
    count: int = SHOWN,
    watch: Callable[[], object] = lambda: None,
    steps: int = 1,
) -> StepEffect:
    """Take the step of a lesson, and compare the model before and after it.

    `other` is a text that the step was not computed on. With several steps, each is computed on the same batch and
    compared with the one before it.
    """
    if type(steps) is not int or steps < 1:
        raise UserError(f"steps = {steps!r}: expected an integer of at least 1")
    first, last = lesson.model, lesson.model
    elsewhere = None if other is None else _as_tensors(first, other, lesson.ids.device)
    here = (lesson.ids, lesson.target_ids)
    logits = _logits(first, lesson.ids)
    losses_before = _losses(logits, lesson.target_ids)
    losses = [_mean(losses_before)]
    others = [] if elsewhere is None else [_mean_loss(first, *elsewhere)]
    parts: dict[str, float] = {}
    for step in range(steps):
        lesson = lesson if step == 0 else lesson.step()
        watch()
        last = lesson.apply()
        for name, part in _first_order(lesson, last).items():
            parts[name] = parts.get(name, 0.0) + part
        losses.append(_mean_loss(last, *here))
        if elsewhere is not None:
            others.append(_mean_loss(last, *elsewhere))
        watch()
    moved = {each.name: each for each in changed_weights(*(m.transformer("a step") for m in (first, last)))}
    weights = [WeightEffect(name, part, *moved[name][1:]) for name, part in parts.items()]
    changes = list(starmap(LossChange, pairwise(losses)))
    elsewheres = list(starmap(LossChange, pairwise(others))) if others else [None] * steps
    after = _logits(last, here[0])
    return StepEffect(
        LossChange(losses[0], losses[-1]),
        losses_before,
        _losses(after, here[1]),
        LossChange(others[0], others[-1]) if others else None,
        list(starmap(StepLosses, zip(changes, elsewheres, strict=True))),
        math.fsum(parts.values()),
        sorted(weights, key=lambda each: each.loss_change)[:count],
        _moved(logits[0], after[0], count),
    )


def _first_order(lesson: Lesson, after: LanguageModel) -> dict[str, float]:
    """The sum of gradient × change over the numbers of each weight."""
    old, new = lesson.model.transformer("a step"), after.transformer("a step")
    found = {}
    for name in _own_names(old.config):
        change = weight(new, name).double() - weight(old, name).double()
        found[name] = (lesson.gradient[name].double() * change).sum().item()
    return found


def changed_weights(before: Transformer, after: Transformer) -> list[ChangedWeight]:
    """How far each weight moved between two states of a model, the largest relative change first."""
    found = []
    for name in weight_names(before.config):
        if name.endswith(PRODUCTS) or (name == "unembedding.W" and before.config.tied):
            continue
        old = weight(before, name)
        change, size = (weight(after, name) - old).norm().item(), old.norm().item()
        found.append(ChangedWeight(name, change, change / size if size else math.nan))
    return sorted(found, key=lambda each: -each.relative if math.isfinite(each.relative) else math.inf)


def _own_names(config: Config) -> list[str]:
    """Each trained number once: no products, and shared keys and values only under the first of their heads."""
    group, found = config.n_head // config.n_kv_head, []
    for name in weight_names(config):
        shared = re.search(r"head\.(\d+)\.[Wb]_[KV]$", name)
        is_copy = shared is not None and int(shared[1]) % group > 0
        if not (is_copy or name.endswith(PRODUCTS) or (name == "unembedding.W" and config.tied)):
            found.append(name)
    return found


def _as_tensors(model: LanguageModel, text: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    batch, _ = make_batch(model, text)
    return torch.from_numpy(batch.inputs).to(device), torch.from_numpy(batch.targets).to(device)


def _mean_loss(model: LanguageModel, ids: Tensor, targets: Tensor) -> float:
    return _mean(_losses(_logits(model, ids), targets))


def _logits(model: LanguageModel, ids: Tensor) -> Tensor:
    logits: Tensor = model.transformer("a step")(ids)
    return logits.float()


def _losses(logits: Tensor, targets: Tensor) -> Tensor:
    found = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    return found.masked_fill(targets == IGNORED, math.nan)


def _mean(losses: Tensor) -> float:
    return losses.double().nanmean().item()


def _moved(before: Tensor, after: Tensor, count: int) -> list[MovedProbability]:
    """The probabilities of one text, T V, that change most; one position at a time to bound the memory."""
    found = []
    for position, (old, new) in enumerate(zip(before, after, strict=True)):
        one, two = old.softmax(-1), new.softmax(-1)
        for i in (two - one).abs().topk(min(count, len(one))).indices.tolist():
            found.append(MovedProbability(position, i, one[i].item(), two[i].item()))
    return sorted(found, key=lambda each: -abs(each.after - each.before))[:count]
