"""Attention in a decoding step: one token per sequence, with the past of each sequence in a slot.

Shapes: B rows of a step, H heads, D features per head, N slots, S positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from clearhead.model.attention_steps import attend_capped, attend_fused
from clearhead.model.mask import AttentionMask
from clearhead.runtime.batched_kv_cache import LENGTH_STEP, padded_length


@dataclass(frozen=True)
class KVSpan:
    """Rows of a step whose sequences lie in adjacent slots and have the same padded length."""

    rows: slice
    slots: slice
    length: int
    bias: Tensor  # rows 1 1 length: 0 where a position may be attended to, -inf elsewhere
    selected: Tensor | None = None  # rows 1 1 1: true for rows with this padded length; None for all


@dataclass(frozen=True)
class BatchedMask(AttentionMask):
    """The mask of a decoding step, as spans of rows."""

    spans: tuple[KVSpan, ...] = ()

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, d_k: int, score_cap: float | None = None
    ) -> Tensor:
        """Attend with B H 1 D queries to the N H S D keys and values of the slots.

        Heads that share a key-value head become several queries of one head. A row in no span is padding and
        yields zeros.
        """
        B, H, _, D = query.shape
        n_kv_head = key.shape[1]
        query = query.reshape(B, n_kv_head, H // n_kv_head, D)
        mixed = query.new_zeros(query.shape)
        for span in self.spans:
            past = (span.slots, slice(None), slice(span.length))
            some = query[span.rows], key[past], value[past]
            if score_cap is None:
                result = attend_fused(*some, span.bias, d_k=d_k)
            else:
                result = attend_capped(*some, span.bias == 0, d_k, score_cap)
            if span.selected is not None:
                result = result.where(span.selected, mixed[span.rows])
            mixed[span.rows] = result
        return mixed.view(B, H, 1, D)


def find_spans(
    slots: Sequence[int],
    positions: Sequence[int],
    like: Tensor,
    window: int | None = None,
    all_rows: bool = False,
) -> tuple[KVSpan, ...]:
    """The rows of a step, one token each, in as few spans as possible; `window` limits local blocks.

    With `all_rows`, every span covers all rows, so that kernel shapes do not depend on the lengths of other
    sequences. `like` gives the device and dtype.
    """
    lengths = [padded_length(position + 1) for position in positions]
    current = torch.tensor(positions, device=like.device)[:, None]
    past = torch.arange(max(lengths), device=like.device)
    allowed = past <= current
    if window is not None:
        allowed &= past > current - window
    bias = torch.zeros(allowed.shape, device=like.device, dtype=like.dtype).masked_fill(~allowed, -math.inf)
    bias = bias[:, None, None]
    if all_rows:
        own, all_slots = (
            current // LENGTH_STEP * LENGTH_STEP + LENGTH_STEP,
            slice(slots[0], slots[0] + len(slots)),
        )
        return tuple(
            KVSpan(
                slice(0, len(slots)), all_slots, length, bias[..., :length], (own == length)[:, None, None]
            )
            for length in sorted(set(lengths))
        )
    rows = range(1, len(slots))
    breaks = [i for i in rows if slots[i] != slots[i - 1] + 1 or lengths[i] != lengths[i - 1]]
    return tuple(
        KVSpan(slice(a, b), slice(slots[a], slots[a] + b - a), lengths[a], bias[a:b, ..., : lengths[a]])
        for a, b in pairwise((0, *breaks, len(slots)))
    )
