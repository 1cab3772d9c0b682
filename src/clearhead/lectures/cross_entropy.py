"""The cross-entropy of one next word, by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.model.attention_steps import softmax


def next_word_loss(logits: Tensor, target: int) -> tuple[float, Tensor, Tensor]:
    """-ln p of the next word, the probabilities p, and the gradient of the loss with respect to the logits."""
    p = softmax(logits)
    y = torch.zeros_like(p)
    y[target] = 1
    return -p[target].log().item(), p, p - y
