"""A Triton kernel for the cross-entropy of training, which reads each logit once and replaces it with its gradient.

Shapes: N positions, V tokens.
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-decorators=False, disallow-untyped-calls=False

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from clearhead.text.tokens import IGNORED

NO_TARGET = tl.constexpr(IGNORED)
LOG2_E = tl.constexpr(1.4426950408889634)  # GPUs compute powers of 2
COLUMNS_PER_WARP = 2048
MOST_WARPS = 16  # with 32, more of a row of 50,304 does not fit in registers


def loss_and_gradient(
    logits: Tensor, targets: Tensor, weight: Tensor, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """The same as `_loss_and_gradient` in chunked_loss.py. The gradient overwrites the logits."""
    n, n_vocab = logits.shape
    assert logits.is_contiguous()
    assert targets.is_contiguous()
    losses = torch.empty(n, device=logits.device)
    block = triton.next_power_of_2(n_vocab)
    warps = min(max(block // COLUMNS_PER_WARP, 1), MOST_WARPS)
    _replace[(n,)](logits, targets, weight, losses, n_vocab, cap, block, num_warps=warps)
    return losses.sum(), logits


@triton.jit
def _replace(
    logits,
    targets,
    weight,
    losses,
    V: tl.constexpr,
    CAP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program per position. Its row of logits stays in registers: `BLOCK` is at least V."""
    n = tl.program_id(0).to(tl.int64)
    v = tl.arange(0, BLOCK)
    inside = v < V
    row, target = logits + n * V, tl.load(targets + n)
    x = tl.load(row + v, mask=inside, other=float("-inf"))
    at = row + tl.maximum(target, 0)
    there = tl.load(at)
    factor = tl.where(target == NO_TARGET, 0.0, tl.load(weight))
    # Relative to the highest, so that a nearly certain token's loss is exact. The cap keeps the order of logits.
    high = _score(tl.max(x, 0), CAP)
    powers = tl.where(inside, tl.exp2(_score(x, CAP) - high), 0.0)  # a cap makes -inf finite
    total = tl.log2(tl.sum(powers, 0))
    own = _score(there, CAP) - high - total
    tl.store(losses + n, -own / LOG2_E * factor)
    tl.store(row + v, tl.exp2(_score(x, CAP) - high - total) * _slope(x, CAP) * factor, mask=inside)
    tl.debug_barrier()  # a comparison of each column with the target would take longer
    tl.store(at, (tl.exp2(own) - 1.0) * _slope(there, CAP) * factor)


@triton.jit
def _score(x, CAP: tl.constexpr):
    """The logit after the cap, times log2(e)."""
    x = x.to(tl.float32)
    if CAP is not None:
        # tanh(u) = 2 / (1 + exp(-2u)) - 1
        x = CAP * (2.0 / (1.0 + tl.exp2(x * (-2.0 / CAP * LOG2_E))) - 1.0)
    return x * LOG2_E


@triton.jit
def _slope(x, CAP: tl.constexpr):
    """The derivative of the cap: 1 - tanh²."""
    if CAP is not None:
        power = tl.exp2(tl.abs(x.to(tl.float32)) * (-2.0 / CAP * LOG2_E))
        slope = 4.0 * power / ((1.0 + power) * (1.0 + power))
    else:
        slope = 1.0
    return slope
