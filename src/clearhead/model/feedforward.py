"""The feed-forward network of a block: a nonlinearity between two matrices, at each position separately."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.config import Config
from clearhead.model.projection import project_together


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU, approximated with tanh.

    Compiled, it is written with a sigmoid, 2σ(2u) - 1 = tanh(u): Triton's tanh has two branches, and computing it takes
    longer than reading and writing x.
    """
    if not torch.compiler.is_compiling():
        return F.gelu(x, approximate="tanh")
    exact = x.float()
    twice = 2 * math.sqrt(2 / math.pi) * (exact + 0.044715 * exact * exact * exact)
    return (exact * torch.sigmoid(twice)).to(x.dtype)


NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "swiglu": F.silu,
    "geglu": gelu_tanh,
}


class FeedForward(nn.Module):
    """f(x W_1) W_2; gated: (f(x W_gate) ∘ x W_1) W_2."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.nonlinearity = NONLINEARITIES[config.feedforward]
        self.first = nn.Linear(config.d_model, config.d_hidden, bias=config.feedforward_bias)
        self.gate = (
            nn.Linear(config.d_model, config.d_hidden, bias=config.feedforward_bias) if config.gated else None
        )
        self.second = nn.Linear(config.d_hidden, config.d_model, bias=config.feedforward_bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.second(self.nonlinearity(self.first(x)))
        gate, first = project_together(x, (self.gate, self.first), merged=self.training)
        return self.second(self.nonlinearity(gate) * first)
