"""Attention masks: which positions may attend to which.

Shapes: B sequences, T query positions, S key positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.model.attention_steps import attend_capped, attend_fused

LONG = 2**12  # positions; for more, the matrix is never stored as a whole
MOST_ENTRIES = 2**24  # of a matrix; attention needs it in float32


@dataclass(frozen=True)
class AttentionMask:
    """`matrix` (B 1 T S or T S) is true where a query may attend to a key.

    `causal` stands for the plain lower-triangular matrix, for which fused kernels need no matrix. With neither,
    every position may attend to every other.
    """

    matrix: Tensor | None = None
    causal: bool = False

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, d_k: int, score_cap: float | None = None
    ) -> Tensor:
        """Attention under this mask: B H T D, B H S D, B H S D → B H T D."""
        if score_cap is None:
            return attend_fused(query, key, value, self.matrix, self.causal, d_k)
        return self._attend_capped(query, key, value, d_k, score_cap)

    def _attend_capped(self, query: Tensor, key: Tensor, value: Tensor, d_k: int, score_cap: float) -> Tensor:
        """The same with capped scores; only those of some queries are in memory at a time."""
        B, H, T, _ = query.shape
        S = key.shape[2]
        width, mixed = max(1, MOST_ENTRIES // (B * H * S)), []
        for start in range(0, T, width):
            stop = min(start + width, T)
            seen = stop if self.causal else S  # later keys are masked for all of these queries
            matrix = self.rows(torch.arange(start, stop, device=query.device), seen)
            some = query[:, :, start:stop], key[:, :, :seen], value[:, :, :seen]
            mixed.append(attend_capped(*some, matrix, d_k, score_cap))
        return torch.cat(mixed, dim=2)

    def sliding_window(self, window: int, T: int, S: int, device: torch.device) -> AttentionMask:
        """The same mask, with the last T of S positions limited to `window` positions, including their own."""
        if window >= S:
            return self
        if self.causal and _is_long(T):
            return LongMask(window=window)
        near = causal_matrix(T, S, device).triu(S - T - window + 1)
        return AttentionMask(near if self.matrix is None else near & self.matrix)

    def rows(self, positions: Tensor, S: int) -> Tensor | None:
        """The matrix rows of these query positions, … T S; None if nothing is masked."""
        if self.causal:
            return torch.arange(S, device=positions.device) <= positions[:, None]
        return None if self.matrix is None else self.matrix[..., positions, :]

    def first_key(self, position: int) -> int:  # noqa: ARG002
        """The first position to which this one and all later ones may attend."""
        return 0

    def part(self, start: int, stop: int, device: torch.device) -> AttentionMask:
        """The causal mask of the queries from `start` to `stop`, over the keys from `first_key(start)` to `stop`."""
        rows = self.rows(torch.arange(start, stop, device=device), stop)
        return AttentionMask(None if rows is None else rows[..., self.first_key(start) : stop])


@dataclass(frozen=True)
class LongMask(AttentionMask):
    """A causal mask whose matrix would be too large: it is computed for some of the queries at a time.

    If given, `documents` (B T) numbers the documents of each row; `window` limits attention to that many positions.
    """

    documents: Tensor | None = None
    window: int = 0

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, d_k: int, score_cap: float | None = None
    ) -> Tensor:
        B, _, T, _ = query.shape
        width, mixed = part_width(B, T), []
        for start in range(0, T, width):
            stop = min(start + width, T)
            mask, keys = self.part(start, stop, query.device), slice(self.first_key(start), stop)
            some = query[:, :, start:stop], key[:, :, keys], value[:, :, keys]
            mixed.append(mask.attend(*some, d_k, score_cap))
        return torch.cat(mixed, dim=2)

    def sliding_window(self, window: int, T: int, S: int, device: torch.device) -> AttentionMask:  # noqa: ARG002
        return self if window >= S else replace(self, window=window)

    def rows(self, positions: Tensor, S: int) -> Tensor:
        keys, queries = torch.arange(S, device=positions.device), positions[:, None]
        matrix = keys <= queries
        if self.window:
            matrix = matrix & (keys > queries - self.window)
        if self.documents is None:
            return matrix
        own = self.documents[:, positions, None] == self.documents[:, None, :S]
        return (matrix & own)[:, None]

    def first_key(self, position: int) -> int:
        return max(0, position - self.window + 1) if self.window else 0


def _is_long(T: int) -> bool:
    """Whether the matrix should be computed in parts; not if gradients are recorded, which need all of it later."""
    return T > LONG and not torch.is_grad_enabled()


def part_width(B: int, T: int) -> int:
    """How many queries of each sequence are processed at a time."""
    return max(1, min(LONG // B, MOST_ENTRIES // (B * T)))


def causal_matrix(T: int, S: int, device: torch.device | None = None) -> Tensor:
    """The last T of S positions, each attending to itself and to what came before: T S."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def document_mask(documents: Tensor, causal: bool) -> AttentionMask:
    """The mask of rows that hold several documents, given the index of each position's document (B T)."""
    T, device = documents.shape[1], documents.device
    if causal and _is_long(T):
        return LongMask(documents=documents)
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
