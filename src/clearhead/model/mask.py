"""Sight: what the positions of a batch know of each other.

Shapes: B sequences, T positions that look, S positions that are looked at, H heads, D features a head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from clearhead.model.position import Rotation

REACH = 64  # positions


def reach(length: int) -> int:
    """How many positions the last word of a text is compared with, those behind its end at -inf.

    Rounded up, so that many texts can share one call; and by the text's own length alone, so that no number
    of a text depends on what stands beside it.
    """
    return -(-length // REACH) * REACH


@dataclass(frozen=True)
class KVSpan:
    """Rows of a step whose texts lie in neighbouring slots and are compared with equally many positions."""

    rows: slice
    slots: slice
    reach: int
    bias: Tensor  # rows 1 1 reach: 0 where visible, -inf where not
    meant: Tensor | None = None  # rows 1 1 1: true for those whose own reach it is; all, unless said


@dataclass(frozen=True)
class AttentionMask:
    """Who may look at whom, and how far the queries and keys of each position are turned.

    `causal` is the plain lower triangle, for which fused kernels need no matrix; `visible` (B 1 T S) is for
    what is not so plain; with neither, all may be seen. `spans` is for rows of a word each, of many texts.
    """

    rotation: Rotation | None = None
    visible: Tensor | None = None
    causal: bool = False
    spans: tuple[KVSpan, ...] = ()

    def within(self, window: int, T: int, S: int, device: torch.device) -> AttentionMask:
        """The same, but the last T of S positions see only so many back, their own included."""
        if window >= S:
            return self
        near = triangle(T, S, device).triu(S - T - window + 1)
        return replace(self, visible=near if self.visible is None else near & self.visible, causal=False)

    def matrix(self, rows: Tensor, S: int) -> Tensor | None:
        """True where these positions may look at the S there are: … rows S. None where all may be seen."""
        if self.causal:
            return torch.arange(S, device=rows.device) <= rows[:, None]
        return None if self.visible is None else self.visible[..., rows, :]


def triangle(T: int, S: int, device: torch.device | None = None) -> Tensor:
    """The last T of S positions, each seeing itself and what came before: T S, true where visible."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def spans(
    slots: Sequence[int],
    positions: Sequence[int],
    like: Tensor,
    window: int | None = None,
    whole: bool = False,
) -> tuple[KVSpan, ...]:
    """The rows of a step, one word each, in as few spans as may be; in a window where blocks are local.

    Where `whole`, every span is of all rows, so that its shape does not depend on how long the others' texts
    are. `like` gives the device and the type of the numbers.
    """
    reaches = [reach(position + 1) for position in positions]
    here = torch.tensor(positions, device=like.device)[:, None]
    past = torch.arange(max(reaches), device=like.device)
    visible = past <= here
    if window is not None:
        visible &= past > here - window
    bias = torch.zeros(visible.shape, device=like.device, dtype=like.dtype).masked_fill(~visible, -math.inf)
    bias = bias[:, None, None]
    if whole:
        own, all_slots = here // REACH * REACH + REACH, slice(slots[0], slots[0] + len(slots))
        return tuple(
            KVSpan(slice(0, len(slots)), all_slots, each, bias[..., :each], (own == each)[:, None, None])
            for each in sorted(set(reaches))
        )
    rows = range(1, len(slots))
    breaks = [i for i in rows if slots[i] != slots[i - 1] + 1 or reaches[i] != reaches[i - 1]]
    return tuple(
        KVSpan(slice(a, b), slice(slots[a], slots[a] + b - a), reaches[a], bias[a:b, ..., : reaches[a]])
        for a, b in pairwise((0, *breaks, len(slots)))
    )
