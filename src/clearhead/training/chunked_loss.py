"""The loss over a large vocabulary, some positions at a time: all logits at once would fill the memory.

Shapes: N positions, C features, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED

LARGE = 2**29  # logits; so many are made at once


def is_large(network: Transformer, ids: Tensor) -> bool:
    """Whether the logits of these are too many, and their matrix a plain one."""
    return ids.numel() * network.config.n_vocab > LARGE and type(network.unembedding) is nn.Linear


def chunked_loss(
    network: Transformer,
    ids: Tensor,
    targets: Tensor,
    weight: Tensor,
    compiled: bool = False,
    most: int = LARGE,
) -> Tensor:
    """The sum of -ln P(word) over the positions that have a target, times a weight: a number."""
    final = network.hidden_states(ids).flatten(0, 1)
    table = network.unembedding.weight
    if torch.is_autocast_enabled(ids.device.type):
        half = torch.get_autocast_dtype(ids.device.type)
        final, table = final.to(half), table.to(half)
    rows = 2 ** max(0, (most // len(table)).bit_length() - 1)
    surprise = torch.compile(_surprise, dynamic=False) if compiled else _surprise
    loss: Tensor = _PartedLoss.apply(final, table, targets.flatten(), weight, rows, surprise)  # type: ignore[no-untyped-call]
    return loss


class _PartedLoss(torch.autograd.Function):
    """Gradients are made with the loss: the logits of a part are gone before the next part's come."""

    @staticmethod
    def forward(
        ctx: Any,
        final: Tensor,
        table: Tensor,
        targets: Tensor,
        weight: Tensor,
        rows: int,
        surprise: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> Tensor:
        total = torch.zeros((), device=final.device)
        by_final, by_table = torch.empty_like(final), torch.zeros(table.shape, device=table.device)
        for start in range(0, len(final), rows):
            here = slice(start, start + rows)
            logits = final[here] @ table.T
            lost, by_logits = surprise(logits, targets[here], weight)
            total += lost
            torch.mm(by_logits, table, out=by_final[here])
            if ctx.needs_input_grad[1]:
                by_table += by_logits.T @ final[here]
        ctx.save_for_backward(by_final, by_table.to(table.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_final, by_table = ctx.saved_tensors
        return by_final * gradient, by_table * gradient, None, None, None, None


def _surprise(logits: Tensor, targets: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of -ln P(target) times the weight, and its gradient: N V, N → a number, N V."""
    told = (targets != IGNORED)[:, None]
    aim = targets.clamp(min=0)[:, None]
    lengths = logits.float()
    log_p = lengths - lengths.logsumexp(-1, keepdim=True)
    lost = -(log_p.gather(1, aim) * told).sum() * weight
    is_aim = torch.arange(logits.shape[1], device=logits.device) == aim
    return lost, ((log_p.exp() - is_aim.float()) * (told * weight)).to(logits.dtype)
