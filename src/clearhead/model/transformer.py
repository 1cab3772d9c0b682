"""The transformer: token and position vectors, a stack of blocks, and the logits of the next token.

Shapes: B sequences, T positions, S positions including cached ones, C features, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.model.attention_steps import cap
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import BlockKVCache, KVCache
from clearhead.model.mask import AttentionMask, causal_matrix, document_mask, padded_mask
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation, document_positions, rotations, sinusoids

# Runs block i: (i, block, x, mask, rotation, cache) → h.
RunBlock = Callable[[int, Any, Tensor, AttentionMask, Rotation | None, BlockKVCache | None], Tensor]


def call_block(i: int, block: Any, *inputs: Any) -> Tensor:  # noqa: ARG001
    return block(*inputs)


class Transformer(nn.Module):
    """Token ids in, logits out; the forward pass stores nothing."""

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
        self._initialize()

    def forward(
        self,
        ids: Tensor,
        padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """B T ids to B T V logits. `padding_mask` (B T) is false at padding tokens, on either side.

        `documents` (B T) numbers the documents of each row: a token attends only to its own document, and
        positions start over in each.
        """
        return self.unembed(self.hidden_states(ids, padding_mask, cache, documents))

    def unembed(self, final: Tensor) -> Tensor:
        """The logits, soft-capped if the config has a cap, from the output of the final norm: … C → … V."""
        return self.cap_logits(self.unembedding(final))

    def cap_logits(self, logits: Tensor) -> Tensor:
        limit = self.config.logit_cap
        return logits if limit is None else cap(logits, limit)

    def hidden_states(
        self,
        ids: Tensor,
        padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
        documents: Tensor | None = None,
        run_block: RunBlock = call_block,
    ) -> Tensor:
        """The output of the final norm, B T C, for callers that do not need logits at every position."""
        if documents is None:
            positions = self.positions(ids, padding_mask, cache)
        else:
            assert padding_mask is None, "packed documents have no padding"
            assert cache is None, "packed documents cannot use a KV cache"
            positions = document_positions(documents)
        masks = self.masks(positions, padding_mask, cache, documents)
        rotations = self.rotations(positions)
        x = self.embed(ids, positions)
        if self.training and torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))  # otherwise the residual stream stays float32
        x = self.run_blocks(x, masks, rotations, None if cache is None else cache.blocks, run_block=run_block)
        if cache is not None:
            cache.length += ids.shape[1]
        return self.final_norm(x)

    def run_blocks(
        self,
        x: Tensor,
        masks: Sequence[AttentionMask],
        rotations: Sequence[Rotation | None],
        caches: Sequence[BlockKVCache] | None = None,
        first: int = 0,
        run_block: RunBlock = call_block,
    ) -> Tensor:
        """The residual stream after the last block, given the one entering block `first`: B T C → B T C.

        `run_block` replaces the plain call of each block, so that traces can record or edit what happens inside.
        """
        for i in range(first, len(self.blocks)):
            cache = None if caches is None else caches[i]
            x = run_block(i, self.blocks[i], x, masks[i], rotations[i], cache)
        return x

    def positions(
        self, ids: Tensor, padding_mask: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """The position of each token in its own sequence, padding not counted: B T, or 1 T if all agree."""
        T = ids.shape[1]
        start = 0 if cache is None else cache.length
        limit = self.config.n_context if cache is None else min(self.config.n_context, cache.size)
        if start + T > limit:
            raise UserError(f"{start + T} tokens exceed the context of {limit}: pass fewer")
        if padding_mask is None:
            return torch.arange(start, start + T, device=ids.device)[None]
        assert cache is None, "a padded batch cannot use a KV cache"
        return (padding_mask.cumsum(1) - 1).clamp(min=0)

    def masks(
        self,
        positions: Tensor,
        padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
        documents: Tensor | None = None,
    ) -> list[AttentionMask]:
        """The attention mask of each block."""
        config, T, device = self.config, positions.shape[1], positions.device
        S = T if cache is None else cache.length + T
        if padding_mask is not None:
            mask = padded_mask(padding_mask, config.causal)
        elif documents is not None:
            mask = document_mask(documents, config.causal)
        elif not config.causal or T == 1:
            mask = AttentionMask()
        else:
            mask = AttentionMask(causal=True) if S == T else AttentionMask(causal_matrix(T, S, device))
        local = mask.sliding_window(config.window, T, S, device) if config.local_blocks else mask
        return [local if i in config.local_blocks else mask for i in range(config.n_block)]

    def rotations(self, positions: Tensor) -> Sequence[Rotation | None]:
        """The RoPE rotation of each block; None without rotary positions."""
        rotary = self.config.position == "rotary"
        return rotations(positions, self.config) if rotary else [None] * self.config.n_block

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The residual stream entering the first block: B T C."""
        x, position = self.token_vectors(ids), self.position_vectors(positions)
        return F.dropout(x if position is None else x + position, self.config.dropout, self.training)

    def token_vectors(self, ids: Tensor) -> Tensor:
        scale = self.config.embedding_scale
        return self.embedding(ids) if scale == 1 else self.embedding(ids) * scale

    def position_vectors(self, positions: Tensor) -> Tensor | None:
        """The position vectors added to the token vectors; None if positions enter elsewhere (RoPE)."""
        if self.position is not None:
            return self.position(positions)
        if self.config.position == "sinusoidal":
            return sinusoids(positions, self.config.d_model).to(self.embedding.weight.dtype)
        return None

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if not self.config.tied:
            # As large as what the blocks add to the stream. A tied embedding must be smaller: it also gives the logits.
            nn.init.normal_(self.embedding.weight, std=0.3)
        # 2 n_block branches add up in the residual stream; its scale should not grow with their number.
        for block in self.blocks:
            assert isinstance(block, Block)
            for branch in (block.attention.output, block.feedforward.second):
                nn.init.normal_(branch.weight, std=0.02 / math.sqrt(2 * self.config.n_block))
