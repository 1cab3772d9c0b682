"""Cross-entropy over a large vocabulary in chunks of positions, so that not all logits are in memory at once.

Shapes: N positions, C features, V tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED

LARGE = 2**29  # logits computed at once


def is_large(network: Transformer, ids: Tensor) -> bool:
    """Whether the logits of these ids exceed the limit and the unembedding is a plain matrix."""
    return ids.numel() * network.config.n_vocab > LARGE and type(network.unembedding) is nn.Linear


def chunked_loss(
    network: Transformer,
    ids: Tensor,
    targets: Tensor,
    weight: Tensor,
    compiled: bool = False,
    max_logits: int = LARGE,
    documents: Tensor | None = None,
) -> Tensor:
    """The sum of -ln P(target) over positions with a target, times `weight`: a scalar."""
    final = network.hidden_states(ids, documents=documents).flatten(0, 1)
    table = network.unembedding.weight
    if torch.is_autocast_enabled(ids.device.type):
        half = torch.get_autocast_dtype(ids.device.type)
        final, table = final.to(half), table.to(half)
    rows = 2 ** max(0, (max_logits // len(table)).bit_length() - 1)
    plain = torch.compile(_loss_and_gradient, dynamic=False) if compiled else _loss_and_gradient
    loss_and_gradient = partial(plain, cap=network.config.logit_cap)
    loss: Tensor = _ChunkedLoss.apply(final, table, targets.flatten(), weight, rows, loss_and_gradient)  # type: ignore[no-untyped-call]
    return loss


class _ChunkedLoss(torch.autograd.Function):
    """Computes gradients together with the loss, so each chunk's logits are freed before the next."""

    @staticmethod
    def forward(
        ctx: Any,
        final: Tensor,
        table: Tensor,
        targets: Tensor,
        weight: Tensor,
        rows: int,
        loss_and_gradient: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> Tensor:
        total = torch.zeros((), device=final.device)
        by_final, by_table = torch.empty_like(final), torch.zeros(table.shape, device=table.device)
        for start in range(0, len(final), rows):
            here = slice(start, start + rows)
            logits = final[here] @ table.T
            loss, by_logits = loss_and_gradient(logits, targets[here], weight)
            total += loss
            torch.mm(by_logits, table, out=by_final[here])
            if ctx.needs_input_grad[1]:
                by_table += by_logits.T @ final[here]
        ctx.save_for_backward(by_final, by_table.to(table.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_final, by_table = ctx.saved_tensors
        return by_final * gradient, by_table * gradient, None, None, None, None


def _loss_and_gradient(
    logits: Tensor, targets: Tensor, weight: Tensor, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """The sum of -ln P(target) times `weight`, and its gradient by the logits before a cap: N V, N → scalar, N V."""
    counted = (targets != IGNORED)[:, None]
    index = targets.clamp(min=0)[:, None]
    shares = None if cap is None else torch.tanh(logits.float() / cap)
    scores = logits.float() if cap is None or shares is None else cap * shares
    log_p = scores - scores.logsumexp(-1, keepdim=True)
    loss = -(log_p.gather(1, index) * counted).sum() * weight
    is_target = torch.arange(logits.shape[1], device=logits.device) == index
    by_scores = (log_p.exp() - is_target.float()) * (counted * weight)
    return loss, (by_scores if shares is None else by_scores * (1 - shares.square())).to(logits.dtype)
