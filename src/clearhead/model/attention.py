"""Attention, step by step: project, compare, divide, mask, softmax, mix, write.

Shapes: B sequences, T positions that look, S positions that are looked at, H heads, D features a head,
C features of the stream. The steps work on any leading dimensions, so on one head or on all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.config import Config
from clearhead.model.kv_cache import Keeps
from clearhead.model.mask import AttentionMask, KVSpan
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation, rotate
from clearhead.model.projection import project_together


def project(x: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """q = x W^Q, and likewise keys and values: … T C → … T D."""
    return x @ W if bias is None else x @ W + bias


def compare(query: Tensor, key: Tensor) -> Tensor:
    """Each query with each key, q · k: … T D, … S D → … T S."""
    return query @ key.transpose(-2, -1)


def divide(scores: Tensor, d_k: int) -> Tensor:
    """By √d_k, so that scores of long vectors do not drown the softmax."""
    return scores / math.sqrt(d_k)


def mask(scaled: Tensor, visible: Tensor) -> Tensor:
    """What may not be seen is set to -inf."""
    return scaled.masked_fill(~visible, -math.inf)


def softmax(masked: Tensor) -> Tensor:
    """Each row of scores into weights that sum to 1."""
    return torch.softmax(masked, dim=-1)


def mix(weights: Tensor, value: Tensor) -> Tensor:
    """Weigh each value and sum: … T S, … S D → … T D."""
    return weights @ value


def write(mixed: Tensor, W: Tensor) -> Tensor:
    """What a head adds to the stream, through its rows of W^O: … T D → … T C."""
    return mixed @ W


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None) -> Tensor:
    """One head, or many at once, as the lecture's steps. The specification of `attend_fused`."""
    scaled = divide(compare(query, key), query.shape[-1])
    weights = softmax(scaled if visible is None else mask(scaled, visible))
    return mix(weights, value)


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Tensor | None = None,
    causal: bool = False,
    d_k: int | None = None,
) -> Tensor:
    """The same numbers from PyTorch's fused kernel, which never writes the T×S matrices down.

    Takes B H T D, with fewer key-value heads where heads share. `causal` stands for a lower triangle;
    `d_k` is D unless said.
    """
    shared = query.shape[1] != key.shape[1]
    scale = None if d_k is None or d_k == query.shape[-1] else 1 / math.sqrt(d_k)
    return F.scaled_dot_product_attention(
        query, key, value, visible, is_causal=causal, scale=scale, enable_gqa=shared
    )


def attend_spans(query: Tensor, key: Tensor, value: Tensor, spans: Sequence[KVSpan], d_k: int) -> Tensor:
    """The same for one word of each of many texts, B H 1 D, whose keys and values lie in slots, N H S D.

    Heads that share keys are so many queries of one head. A row in no span is padding and mixes nothing.
    """
    B, H, _, D = query.shape
    shared = key.shape[1]
    query = query.reshape(B, shared, H // shared, D)
    mixed = query.new_zeros(query.shape)
    for span in spans:
        past = (span.slots, slice(None), slice(span.reach))
        found = attend_fused(query[span.rows], key[past], value[past], span.bias, d_k=d_k)
        mixed[span.rows] = found if span.meant is None else found.where(span.meant, mixed[span.rows])
    return mixed.view(B, H, 1, D)


class Attention(nn.Module):
    """Many heads side by side, then W^O. Heads may share keys and values in groups."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.n_head, self.n_kv_head, self.d_head = config.n_head, config.n_kv_head, config.d_head
        self.d_k = config.d_k
        queries, shared = config.n_head * config.d_head, config.n_kv_head * config.d_head
        self.query = nn.Linear(config.d_model, queries, bias=config.qkv_bias)
        self.key = nn.Linear(config.d_model, shared, bias=config.qkv_bias)
        self.value = nn.Linear(config.d_model, shared, bias=config.qkv_bias)
        self.output = nn.Linear(queries, config.d_model, bias=config.output_bias)
        self.query_norm = Norm(config.d_head, config) if config.qk_norm else None
        self.key_norm = Norm(config.d_head, config) if config.qk_norm else None

    def forward(self, x: Tensor, sight: AttentionMask, cache: Keeps | None = None) -> Tensor:
        query, key, value = self.project_heads(x, sight.rotation)
        if cache is not None:
            key, value = cache.append(key, value)
        if sight.spans:
            mixed = attend_spans(query, key, value, sight.spans, self.d_k)
        else:
            mixed = attend_fused(query, key, value, sight.visible, sight.causal, self.d_k)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def project_heads(self, x: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as they are compared, B H T D; keys and values of the shared heads."""
        B, T, _ = x.shape
        found = project_together(x, (self.query, self.key, self.value), merged=self.training)
        query, key, value = (each.view(B, T, -1, self.d_head) for each in found)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        return query.to(value.dtype), key.to(value.dtype), value
