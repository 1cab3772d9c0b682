"""The pre-norm block: attention, then feed-forward, each added to the residual stream."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.attention import Attention
from clearhead.model.config import Config
from clearhead.model.feedforward import FeedForward
from clearhead.model.kv_cache import Keeps
from clearhead.model.mask import AttentionMask
from clearhead.model.norm import Norm


class Block(nn.Module):
    """t1 = LN(x), t2 = MHA(t1), t3 = t2 + x, t4 = LN(t3), t5 = FFN(t4), h = t5 + t3.

    A parallel block has t4 = LN(x); with norms after, t2 and t5 are normed before they are added.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm = Norm(config.d_model, config)
        self.attention = Attention(config)
        self.norm2 = Norm(config.d_model, config)
        self.feedforward = FeedForward(config)
        self.attention_norm = Norm(config.d_model, config) if config.after_norm else None
        self.feedforward_norm = Norm(config.d_model, config) if config.after_norm else None
        self.parallel = config.parallel
        self.dropout = config.dropout

    def forward(self, x: Tensor, sight: AttentionMask, cache: Keeps | None = None) -> Tensor:
        return self.second_half(self.first_half(x, sight, cache), x)

    def first_half(self, x: Tensor, sight: AttentionMask, cache: Keeps | None = None) -> Tensor:
        """x → t3: what attention brings from other positions is added to the stream."""
        t2 = self.attention(self.norm(x), sight, cache)
        if self.attention_norm is not None:
            t2 = self.attention_norm(t2)
        return F.dropout(t2, self.dropout, self.training) + x

    def second_half(self, t3: Tensor, x: Tensor) -> Tensor:
        """t3 → h: what the feed-forward makes of each position is added to it."""
        t5 = self.feedforward(self.norm2(x if self.parallel else t3))
        if self.feedforward_norm is not None:
            t5 = self.feedforward_norm(t5)
        return F.dropout(t5, self.dropout, self.training) + t3
