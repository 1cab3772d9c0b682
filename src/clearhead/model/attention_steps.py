"""The lecture's steps as pure functions: project, compare, divide, mask, softmax, mix (weigh and sum), write.

Soft-capping, as in Gemma 2, is one more step, after divide.

Shapes: B sequences, T query positions, S key positions, G key-value heads, H heads, D features per head, C features of
the residual stream. The steps accept any leading dimensions, so they work on one head or on all heads at once.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

SHORT = 2**14  # features of all queries of a head: 512 positions with 32 features, or 256 with 64


def project(x: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """Queries q = x W^Q, and likewise keys and values: … T C → … T D."""
    return x @ W if bias is None else x @ W + bias


def compare(query: Tensor, key: Tensor) -> Tensor:
    """Scores: the dot product q · k of each query with each key. … T D, … S D → … T S."""
    return query @ key.transpose(-2, -1)


def divide(scores: Tensor, d_k: int) -> Tensor:
    """Divide by √d_k, so that dot products of long vectors do not saturate the softmax."""
    return scores / math.sqrt(d_k)


def cap(values: Tensor, limit: float) -> Tensor:
    """Soft-capping: limit · tanh(x / limit), which is close to x for small x and stays between -limit and limit."""
    return limit * torch.tanh(values / limit)


def mask(scaled: Tensor, attention_mask: Tensor) -> Tensor:
    """Set scores to -inf wherever the mask is false."""
    return scaled.masked_fill(~attention_mask, -math.inf)


def softmax(masked: Tensor) -> Tensor:
    """Turn each row of scores into weights that sum to 1."""
    return torch.softmax(masked, dim=-1)


def mix(weights: Tensor, value: Tensor) -> Tensor:
    """Weigh each value and sum: … T S, … S D → … T D."""
    return weights @ value


def write(mixed: Tensor, W: Tensor) -> Tensor:
    """What a head adds to the residual stream, through its rows of W^O: … T D → … T C."""
    return mixed @ W


def attend(query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Attention in the lecture's steps: the specification of `attend_fused`."""
    scaled = divide(compare(query, key), query.shape[-1])
    weights = softmax(scaled if attention_mask is None else mask(scaled, attention_mask))
    return mix(weights, value)


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    causal: bool = False,
    d_k: int | None = None,
) -> Tensor:
    """The same result from PyTorch's fused kernel, which never materializes the T×S matrices.

    Takes B H T D tensors, with fewer key-value heads in grouped-query attention. `causal` stands for a
    lower-triangular mask; `d_k` defaults to D.
    """
    grouped = query.shape[1] != key.shape[1]
    scale = None if d_k is None or d_k == query.shape[-1] else 1 / math.sqrt(d_k)
    if not _is_faster_in_float32(query, value):
        query, key = query.to(value.dtype), key.to(value.dtype)
        return F.scaled_dot_product_attention(
            query, key, value, attention_mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )
    with torch.autocast("cpu", enabled=False):
        inputs = query.float(), key.float(), value.float()
        return attend_fused(*inputs, attention_mask, causal, d_k).to(value.dtype)


def _is_faster_in_float32(query: Tensor, value: Tensor) -> bool:
    """In training on a CPU, the backward pass in bfloat16 takes up to four times as long for short sequences of small
    heads.
    """
    is_training = torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")
    is_short = query.shape[-2] * query.shape[-1] <= SHORT
    return is_training and is_short and query.is_cpu and value.dtype == torch.bfloat16


def attend_capped(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, d_k: int, score_cap: float
) -> Tensor:
    """Attention with soft-capped scores, for which there is no fused kernel: the T×S matrices are materialized.

    Takes B H T D tensors, with fewer key-value heads in grouped-query attention. Scores are at least float32.
    """
    B, _, T, D = query.shape
    dtype = torch.promote_types(query.dtype, torch.float32)
    groups = query.to(dtype).view(B, key.shape[1], -1, T, D)  # B G H/G T D
    scores = cap(divide(compare(groups, key.to(dtype)[:, :, None]), d_k), score_cap)
    if attention_mask is not None:
        scores = mask(scores, attention_mask if attention_mask.dim() == 2 else attention_mask[:, :, None])
    return mix(softmax(scores).to(value.dtype), value[:, :, None]).flatten(1, 2)
