"""What a training step does to a model: the losses before and after, and the numbers that change most.

Shapes: B sequences, T positions, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.weights import weight, weight_names
from clearhead.language_model import LanguageModel
from clearhead.lessons.gradients import PRODUCTS
from clearhead.lessons.lesson import Lesson
from clearhead.lessons.text_lesson import make_batch
from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED

SHOWN = 10


class ChangedWeight(NamedTuple):
    """How far a weight moves: the norm of its change, also relative to its own norm."""

    name: str
    change: float
    relative: float  # NaN if the weight was 0


class MovedProbability(NamedTuple):
    """The probability of a token at a position, before and after the step."""

    position: int
    id: int
    before: float
    after: float


class LossChange(NamedTuple):
    before: float
    after: float


@dataclass(frozen=True)
class StepEffect:
    """The effect of a step on its own text and, if there is one, on another text."""

    loss: LossChange
    losses: Tensor  # after the step, B T; NaN where there is no target
    other: LossChange | None
    weights: list[ChangedWeight]  # the largest relative change first
    probabilities: list[MovedProbability]  # of the first text; the largest change first


@torch.no_grad()
def measure_effect(
    lesson: Lesson, other: Any = None, count: int = SHOWN, watch: Callable[[], object] = lambda: None
) -> StepEffect:
    """Take the step of a lesson and compare. `other` is a text that the step was not computed on."""
    before, after = lesson.model, lesson.apply()
    watch()
    logits = [_logits(model, lesson.ids) for model in (before, after)]
    losses = [_losses(each, lesson.target_ids) for each in logits]
    watch()
    elsewhere = None
    if other is not None:
        batch, _ = make_batch(before, other)
        ids, targets = (
            torch.from_numpy(each).to(lesson.ids.device) for each in (batch.inputs, batch.targets)
        )
        elsewhere = LossChange(*(_mean(_losses(_logits(model, ids), targets)) for model in (before, after)))
    return StepEffect(
        LossChange(*map(_mean, losses)),
        losses[1],
        elsewhere,
        changed_weights(before.transformer("a step"), after.transformer("a step"))[:count],
        _moved(logits[0][0], logits[1][0], count),
    )


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
