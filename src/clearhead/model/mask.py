"""Attention masks: which positions may attend to which.

Shapes: B sequences, T query positions, S key positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.model.attention_steps import attend_fused


@dataclass(frozen=True)
class AttentionMask:
    """`matrix` (B 1 T S or T S) is true where a query may attend to a key.

    `causal` stands for the plain lower-triangular matrix, for which fused kernels need no matrix. With neither,
    every position may attend to every other.
    """

    matrix: Tensor | None = None
    causal: bool = False

    def attend(self, query: Tensor, key: Tensor, value: Tensor, d_k: int) -> Tensor:
        """Attention under this mask: B H T D, B H S D, B H S D → B H T D."""
        return attend_fused(query, key, value, self.matrix, self.causal, d_k)

    def sliding_window(self, window: int, T: int, S: int, device: torch.device) -> AttentionMask:
        """The same mask, with the last T of S positions limited to `window` positions, their own included."""
        if window >= S:
            return self
        near = causal_matrix(T, S, device).triu(S - T - window + 1)
        return AttentionMask(near if self.matrix is None else near & self.matrix)

    def rows(self, positions: Tensor, S: int) -> Tensor | None:
        """The matrix rows of these query positions, … T S; None if nothing is masked."""
        if self.causal:
            return torch.arange(S, device=positions.device) <= positions[:, None]
        return None if self.matrix is None else self.matrix[..., positions, :]


def causal_matrix(T: int, S: int, device: torch.device | None = None) -> Tensor:
    """The last T of S positions, each attending to itself and to what came before: T S."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def document_mask(documents: Tensor, causal: bool) -> AttentionMask:
    """The mask of rows that hold several documents, given the index of each position's document (B T)."""
    T, device = documents.shape[1], documents.device
    matrix = documents[:, :, None] == documents[:, None, :]
    if causal:
        matrix = matrix & causal_matrix(T, T, device)
    return AttentionMask(matrix[:, None])


def padded_mask(padding_mask: Tensor, causal: bool) -> AttentionMask:
    """The mask of a padded batch, given its padding mask (B T), which is false at padding."""
    T, device = padding_mask.shape[1], padding_mask.device
    # Padding attends to itself: a fully masked row would give 0/0 in the softmax.
    matrix = padding_mask[:, None, :] | torch.eye(T, dtype=torch.bool, device=device)
    if causal:
        matrix = matrix & causal_matrix(T, T, device)
    return AttentionMask(matrix[:, None])
