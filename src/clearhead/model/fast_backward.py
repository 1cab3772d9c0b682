"""RMSNorm and RoPE with their backward passes written out.

On a CPU, autograd's take twice as long: it passes over the vectors once for each elementary operation, and keeps each
result. GPUs compile the plain versions instead. The forward passes give the same bits as the plain versions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def is_faster(x: Tensor) -> bool:
    """Whether to use these versions, which have no forward-mode derivative."""
    return x.is_cpu and torch.is_grad_enabled()


class RMSNorm(torch.autograd.Function):
    """γ x / √(mean(x²) + ε) along the last dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
        inverse = x.square().mean(-1, keepdim=True).add_(epsilon).rsqrt_()
        unit = x * inverse
        ctx.save_for_backward(unit, gain, inverse)
        return unit * gain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        unit, gain, inverse = ctx.saved_tensors
        per_feature = gradient * unit
        by_gain = per_feature.flatten(0, -2).sum(0) if ctx.needs_input_grad[1] else None
        if not ctx.needs_input_grad[0]:
            return None, by_gain, None
        # Only the part of the gradient that is orthogonal to x changes the direction of x.
        with torch.autocast("cpu", enabled=False):
            along = (per_feature @ gain).unsqueeze(-1).div_(-unit.shape[-1])
        return (gradient * gain).addcmul_(unit, along).mul_(inverse), by_gain, None


class Rotate(torch.autograd.Function):
    """Rotate feature i together with feature i + D/2; the gradient is rotated back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradient, cos, -sin), None, None


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = cos.shape[-1]
    first, second = x[..., :half], x[..., half : 2 * half]
    turned = torch.empty_like(x)
    torch.sub(first * cos, second * sin, out=turned[..., :half])
    torch.add(second * cos, first * sin, out=turned[..., half : 2 * half])
    turned[..., 2 * half :] = x[..., 2 * half :]
    return turned
