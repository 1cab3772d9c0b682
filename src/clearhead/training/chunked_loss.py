"""Cross-entropy over a large vocabulary in chunks of positions, so that not all logits are in memory at once.

Shapes: N positions, C features, V tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from clearhead.model.transformer import Transformer
from clearhead.runtime.device import can_compile, memory_of
from clearhead.text.tokens import IGNORED

LARGE = 2**29  # logits computed at once; the kernel, which needs no memory besides them, may take more:
LARGEST_SHARE = 16  # one part in this many of the device's memory
MOST_KEPT = 2**17  # bytes of a row of logits, which the kernel keeps in registers

LossAndGradient = Callable[..., tuple[Tensor, Tensor]]


def is_large(network: Transformer, ids: Tensor) -> bool:
    """Whether the logits of these ids exceed the limit and the unembedding is a plain matrix."""
    return ids.numel() * network.config.n_vocab > LARGE and type(network.unembedding) is nn.Linear


def chunked_loss(
    network: Transformer,
    ids: Tensor,
    targets: Tensor,
    weight: Tensor,
    compiled: bool = False,
    max_logits: int | None = None,
    documents: Tensor | None = None,
) -> Tensor:
    """The sum of -ln P(target) over positions with a target, times `weight`: a scalar."""
    final = network.hidden_states(ids, documents=documents).flatten(0, 1)
    table = network.unembedding.weight
    if torch.is_autocast_enabled(ids.device.type):
        half = torch.get_autocast_dtype(ids.device.type)
        final, table = final.to(half), table.to(half)
    loss_and_gradient, most = _pick(table, compiled)
    rows = 2 ** max(0, ((max_logits or most) // len(table)).bit_length() - 1)
    at_once = partial(loss_and_gradient, cap=network.config.logit_cap)
    loss: Tensor = _ChunkedLoss.apply(final, table, targets.flatten(), weight, rows, at_once)  # type: ignore[no-untyped-call]
    return loss


def _pick(table: Tensor, compiled: bool) -> tuple[LossAndGradient, int]:
    """The fastest version of `_loss_and_gradient` for this unembedding's logits, and how many to compute at once."""
    device, size = table.device, table.element_size()
    if can_compile(device) and size <= 4 and len(table) * size <= MOST_KEPT:
        from clearhead.training import loss_kernel  # imports Triton

        return loss_kernel.loss_and_gradient, max(LARGE, (memory_of(device) or 0) // LARGEST_SHARE // size)
    return torch.compile(_loss_and_gradient, dynamic=False) if compiled else _loss_and_gradient, LARGE


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
        loss_and_gradient: LossAndGradient,
    ) -> Tensor:
        total = torch.zeros((), device=final.device)
        by_final, by_table = torch.empty_like(final), None
        for start in range(0, len(final), rows):
            here = slice(start, start + rows)
            logits = final[here] @ table.T
            loss, by_logits = loss_and_gradient(logits, targets[here], weight)
            total += loss
            torch.mm(by_logits, table, out=by_final[here])
            if ctx.needs_input_grad[1]:
                by_chunk = by_logits.T @ final[here]
                by_table = by_chunk if by_table is None else by_table.float().add_(by_chunk)
            del logits, by_logits
        ctx.save_for_backward(by_final, None if by_table is None else by_table.to(table.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_final, by_table = ctx.saved_tensors
        # In place: nothing else needs them, and autograd refuses to run backward a second time.
        return (
            by_final.mul_(gradient),
            None if by_table is None else by_table.mul_(gradient),
            None,
            None,
            None,
            None,
        )


def _loss_and_gradient(
    logits: Tensor, targets: Tensor, weight: Tensor, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """The sum of -ln P(target) times `weight`, and its gradient with respect to the logits: N V, N → scalar, N V.

    The logits are those before a cap.
    """
    counted = (targets != IGNORED)[:, None]
    index = targets.clamp(min=0)[:, None]
    shares = None if cap is None else torch.tanh(logits.float() / cap)
    scores = logits.float() if cap is None or shares is None else cap * shares
    log_p = scores - scores.logsumexp(-1, keepdim=True)
    loss = -(log_p.gather(1, index) * counted).sum() * weight
    is_target = torch.arange(logits.shape[1], device=logits.device) == index
    by_scores = (log_p.exp() - is_target.float()) * (counted * weight)
    return loss, (by_scores if shares is None else by_scores * (1 - shares.square())).to(logits.dtype)
