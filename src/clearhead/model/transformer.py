"""The transformer: token and position vectors, a stack of blocks, and the next word's logits.

Shapes: B sequences, T positions, S positions with those cached before, C features, V words.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.model.mask import AttentionMask, triangle
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation, rotation, sinusoids


class Transformer(nn.Module):
    """Ids in, logits out; nothing is kept."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_vocab, config.d_model)
        self.position = (
            nn.Embedding(config.n_context, config.d_model) if config.position == "learned" else None
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_block))
        self.final_norm = Norm(config.d_model, config)
        self.unembedding = nn.Linear(config.d_model, config.n_vocab, bias=False)
        if config.tied:
            self.unembedding.weight = self.embedding.weight
        self._initialise()

    def forward(self, ids: Tensor, real: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """B T ids to B T V logits. `real` (B T) is false at padding, on either side; a cache goes before."""
        return self.unembedding(self.read(ids, real, cache))

    def read(self, ids: Tensor, real: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """The same as far as the last norm, B T C, for those who do not want every position's logits."""
        positions = self.positions(ids, real, cache)
        sights = self.sights(positions, real, cache)
        caches = [None] * len(self.blocks) if cache is None else cache.blocks
        x = self.embed(ids, positions)
        if self.training and torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))  # or else every sum in the stream is float32
        for block, sight, block_cache in zip(self.blocks, sights, caches, strict=True):
            x = block(x, sight, block_cache)
        if cache is not None:
            cache.length += ids.shape[1]
        return self.final_norm(x)

    def positions(self, ids: Tensor, real: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """Where each token stands in its own sequence, padding not counted: B T (or 1 T where all agree)."""
        T = ids.shape[1]
        start = 0 if cache is None else cache.length
        longest = self.config.n_context if cache is None else min(self.config.n_context, cache.size)
        if start + T > longest:
            raise UserError(f"{start + T} tokens are more than the context of {longest}: give fewer")
        if real is None:
            return torch.arange(start, start + T, device=ids.device)[None]
        assert cache is None, "a padded batch has no cache"
        return (real.cumsum(1) - 1).clamp(min=0)

    def sights(
        self, positions: Tensor, real: Tensor | None = None, cache: KVCache | None = None
    ) -> list[AttentionMask]:
        """For each block who may look at whom, and how far each is turned."""
        config, turned, turned_locally = self.config, None, None
        if config.position == "rotary":
            turned = rotation(positions, config.rotary_dim, config.rotary_base, config.rotary_stretch)
            turned_locally = turned
            if config.local_rotary_base:
                turned_locally = rotation(positions, config.rotary_dim, config.local_rotary_base)
        sight = self._sight(turned, positions, real, cache)
        if not config.local_blocks:
            return [sight] * config.n_block
        T = positions.shape[1]
        S = T + (0 if cache is None else cache.length)
        local = replace(sight, rotation=turned_locally).within(config.window, T, S, positions.device)
        return [local if i in config.local_blocks else sight for i in range(config.n_block)]

    def _sight(
        self, turned: Rotation | None, positions: Tensor, real: Tensor | None, cache: KVCache | None
    ) -> AttentionMask:
        T, device = positions.shape[1], positions.device
        if real is not None:
            # Padding sees itself: a row with nothing to see would be 0/0.
            visible = real[:, None, :] | torch.eye(T, dtype=torch.bool, device=device)
            if self.config.causal:
                visible = visible & triangle(T, T, device)
            return AttentionMask(turned, visible[:, None])
        if not self.config.causal or T == 1:
            return AttentionMask(turned)
        if cache is None or cache.length == 0:
            return AttentionMask(turned, causal=True)
        return AttentionMask(turned, triangle(T, cache.length + T, device))

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The residual stream entering the first block: B T C."""
        x, places = self.token_vectors(ids), self.position_vectors(positions)
        return F.dropout(x if places is None else x + places, self.config.dropout, self.training)

    def token_vectors(self, ids: Tensor) -> Tensor:
        scale = self.config.embedding_scale
        return self.embedding(ids) if scale == 1 else self.embedding(ids) * scale

    def position_vectors(self, positions: Tensor) -> Tensor | None:
        """What is added for each position, where that is how a model knows it."""
        if self.position is not None:
            return self.position(positions)
        if self.config.position == "sinusoidal":
            return sinusoids(positions, self.config.d_model).to(self.embedding.weight.dtype)
        return None

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if not self.config.tied:
            # As large as what the blocks will add to it; one that gives the logits too cannot be.
            nn.init.normal_(self.embedding.weight, std=0.3)
        # 2 n_block branches add up in the stream; it should not grow with their number.
        for block in self.blocks:
            assert isinstance(block, Block)
            for branch in (block.attention.output, block.feedforward.second):
                nn.init.normal_(branch.weight, std=0.02 / math.sqrt(2 * self.config.n_block))
