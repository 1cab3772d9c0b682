"""LayerNorm and RMSNorm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.config import Config
from clearhead.model.fast_backward import RMSNorm, is_faster


class Norm(nn.Module):
    """`layer`: γ (x - μ)/σ + β. `rms`: γ x / √mean(x²). A small ε under the root avoids division by zero."""

    def __init__(self, width: int, config: Config) -> None:
        super().__init__()
        self.epsilon = config.norm_epsilon
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width)) if config.norm == "layer" else None

    def forward(self, x: Tensor) -> Tensor:
        # Under autocast, x may be bfloat16; the mean of squares needs the parameter's precision.
        x = x.to(self.gain.dtype)
        if self.shift is None and is_faster(x):
            return RMSNorm.apply(x, self.gain, self.epsilon)  # type: ignore[no-untyped-call]
        if self.shift is None:
            return F.rms_norm(x, x.shape[-1:], self.gain, self.epsilon)
        return F.layer_norm(x, x.shape[-1:], self.gain, self.shift, self.epsilon)
