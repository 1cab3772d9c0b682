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
        self.d_head, self.d_k, self.score_cap = config.d_head, config.d_k, config.score_cap
        d_query, d_shared = config.n_head * config.d_head, config.n_kv_head * config.d_head
        self.query = nn.Linear(config.d_model, d_query, bias=config.qkv_bias)
        self.key = nn.Linear(config.d_model, d_shared, bias=config.qkv_bias)
        self.value = nn.Linear(config.d_model, d_shared, bias=config.qkv_bias)
        self.output = nn.Linear(d_query, config.d_model, bias=config.output_bias)
        widths = (d_query, d_shared) if config.qk_norm_joint else (config.d_head, config.d_head)
        self.query_norm = Norm(widths[0], config) if config.qk_norm else None
        self.key_norm = Norm(widths[1], config) if config.qk_norm else None

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
        mixed = mask.attend(query, key, value, self.d_k, self.score_cap)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def project_heads(self, x: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: B H T D; queries and keys after QK-norm and RoPE."""
        B, T, _ = x.shape
        query, key, value = project_together(x, (self.query, self.key, self.value), merged=self.training)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = normalize_groups(query, self.query_norm), normalize_groups(key, self.key_norm)
        query, key, value = (part.view(B, T, -1, self.d_head).transpose(1, 2) for part in (query, key, value))
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        return query, key, value


def normalize_groups(x: Tensor, norm: Norm) -> Tensor:
    """QK-norm: normalize each group of features that the norm covers, one head or all together: B T H·D."""
    return norm(x.reshape(*x.shape[:-1], -1, len(norm.gain))).flatten(-2)
