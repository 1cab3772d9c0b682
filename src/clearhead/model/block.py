"""The block: attention, then feed-forward, each added to the residual stream."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from clearhead.model.attention import Attention
from clearhead.model.config import Config
from clearhead.model.feedforward import FeedForward
from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation


class Block(nn.Module):
    """The lecture's block: t1 = LN(x), t2 = MHA(t1), t3 = t2 + x, t4 = LN(t3), t5 = FFN(t4), h = t5 + t3.

    A parallel block computes t4 = LN(x). With post-norm, t2 and t5 are normalized before they are added; without
    pre-norm, t1 = x and t4 = t3.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm = Norm(config.d_model, config) if config.pre_norm else nn.Identity()
        self.attention = Attention(config)
        self.norm2 = Norm(config.d_model, config) if config.pre_norm else nn.Identity()
        self.feedforward = FeedForward(config)
        self.attention_norm = Norm(config.d_model, config) if config.post_norm else nn.Identity()
        self.feedforward_norm = Norm(config.d_model, config) if config.post_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.parallel = config.parallel

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: BlockKVCache | None = None,
        on_middle: Callable[[Tensor], object] | None = None,
    ) -> Tensor:
        """x → h, B T C. `on_middle` receives t3, the residual stream between the two halves."""
        t1 = self.norm(x)
        t2 = self.attention_norm(self.attention(t1, mask, rotation, cache))
        t3 = self.dropout(t2) + x
        t4 = self.norm2(x if self.parallel else t3)
        t5 = self.feedforward_norm(self.feedforward(t4))
        h = self.dropout(t5) + t3
        if on_middle is not None:
            on_middle(t3)
        return h
