"""The feed-forward network of a block: a nonlinearity between two matrices, at each position separately."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.config import Config
from clearhead.model.projection import project_together

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swiglu": F.silu,
    "geglu": partial(F.gelu, approximate="tanh"),
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
