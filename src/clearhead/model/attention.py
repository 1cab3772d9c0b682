"""Multi-head attention: project to queries, keys and values, attend, and project back through W^O.

Shapes: B sequences, T positions, H heads, D features per head, C features of the residual stream.
"""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.model.config import Config
from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation, rotate
from clearhead.model.projection import project_together


class Attention(nn.Module):
    """All heads of a block side by side. Groups of heads may share keys and values (GQA)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.d_head, self.d_k = config.d_head, config.d_k
        d_query, d_shared = config.n_head * config.d_head, config.n_kv_head * config.d_head
        self.query = nn.Linear(config.d_model, d_query, bias=config.qkv_bias)
        self.key = nn.Linear(config.d_model, d_shared, bias=config.qkv_bias)
        self.value = nn.Linear(config.d_model, d_shared, bias=config.qkv_bias)
        self.output = nn.Linear(d_query, config.d_model, bias=config.output_bias)
        self.query_norm = Norm(config.d_head, config) if config.qk_norm else None
        self.key_norm = Norm(config.d_head, config) if config.qk_norm else None

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: BlockKVCache | None = None,
    ) -> Tensor:
        query, key, value = self.project_heads(x, rotation)
        if cache is not None:
            key, value = cache.append(key, value)
        mixed = mask.attend(query, key, value, self.d_k)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def project_heads(self, x: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: B H T D; queries and keys after QK-norm and RoPE."""
        B, T, _ = x.shape
        projected = project_together(x, (self.query, self.key, self.value), merged=self.training)
        query, key, value = (part.view(B, T, -1, self.d_head) for part in projected)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        return query.to(value.dtype), key.to(value.dtype), value
