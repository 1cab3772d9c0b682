"""Distillation: a student learns what its teachers predict and, in part, the true target.

Shapes: B sequences, T positions, V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.networks import Network
from clearhead.text.tokens import IGNORED
from clearhead.training.objective import cross_entropy

# The share of the true target in what a student learns; the rest is what its teachers predict (docs/experiments.md).
TRUE_SHARE = 0.1


@torch.no_grad()
def mean_prediction(teachers: Sequence[Network], inputs: Tensor, documents: Tensor | None = None) -> Tensor:
    """The mean of the probabilities that the teachers give each next token: B T → B T V."""
    total = None
    for teacher in teachers:
        logits = teacher(inputs) if documents is None else teacher(inputs, documents=documents)
        probabilities = logits.float().softmax(-1)
        total = probabilities if total is None else total.add_(probabilities)
    assert total is not None
    return total / len(teachers)


def position_losses(logits: Tensor, targets: Tensor, predicted: Tensor | None, true_share: float) -> Tensor:
    """The loss of each position, 0 where it has no target: B T V, B T → B T. Without teachers, only the target's."""
    flat = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, 1)
    found = F.cross_entropy(flat, targets.flatten(), ignore_index=IGNORED, reduction="none").view_as(targets)
    if predicted is None:
        return found
    soft = -(predicted.float() * logits.float().log_softmax(-1)).sum(-1).masked_fill(targets == IGNORED, 0.0)
    return true_share * found + (1 - true_share) * soft


def distillation_loss(logits: Tensor, targets: Tensor, predicted: Tensor, true_share: float) -> Tensor:
    """The cross-entropy with the true targets and with the predicted ones, summed over all positions with a target."""
    log_probabilities = logits.float().log_softmax(-1)
    soft = -(predicted.float() * log_probabilities).sum(-1)
    soft = soft.masked_fill(targets == IGNORED, 0.0).sum()
    return true_share * cross_entropy(logits, targets, "sum") + (1 - true_share) * soft
