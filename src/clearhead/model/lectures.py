"""The lectures' earlier forms of attention, leading up to a full head.

Shapes: T positions, D features. Row vectors throughout.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.model.attention_steps import compare, divide, mask, mix, softmax
from clearhead.model.mask import causal_matrix


def simplest_attention(x: Tensor) -> Tensor:
    """Without projections: the vectors up to each position, summed with their similarities as weights. T D → T D."""
    T = x.shape[0]
    return mix(softmax(mask(compare(x, x), causal_matrix(T, T, x.device))), x)


def query_attention(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One query against every key, unscaled and unmasked: scores, weights and the mixed values."""
    scores = keys @ query
    weights = softmax(scores)
    return scores, weights, mix(weights, values)


def linear_attention(query: Tensor, keys: Tensor, W: Tensor) -> Tensor:
    """The scores k_j W q: a matrix defines what counts as similar."""
    return keys @ W @ query


def head_as_loops(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, divided: bool = True) -> Tensor:
    """One causal head, token by token: what `head_as_matrices` computes all at once. T C → T D.

    Lecture 002 does not divide the scores by √d_k.
    """
    outputs, scale = [], W_K.shape[1] ** 0.5 if divided else 1.0
    for i in range(x.shape[0]):
        query = x[i] @ W_Q
        scores = torch.stack([query @ (x[j] @ W_K) / scale for j in range(i + 1)])
        weights = softmax(scores)
        outputs.append(torch.stack([weights[j] * (x[j] @ W_V) for j in range(i + 1)]).sum(0))
    return torch.stack(outputs)


def head_as_matrices(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, divided: bool = True) -> Tensor:
    """One causal head as matrix products. T C → T D."""
    T = x.shape[0]
    Q, K, V = x @ W_Q, x @ W_K, x @ W_V
    scores = divide(compare(Q, K), W_K.shape[1]) if divided else compare(Q, K)
    return mix(softmax(mask(scores, causal_matrix(T, T, x.device))), V)
