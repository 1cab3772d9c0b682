"""Which texts of a batch move a head: the gradient of its weights, split into the parts of each text."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.lessons.lesson import Lesson
from clearhead.lessons.uses import Use

HEAD_WEIGHTS = ("W_Q", "W_K", "W_V", "W_O")


def head_rows(lesson: Lesson, block: int, head: int) -> Tensor:
    """The norm of each text's part of the gradient of a head's four matrices: B."""
    squares = torch.zeros(len(lesson.ids), dtype=torch.float64)
    for name in HEAD_WEIGHTS:
        for use in lesson.gradient.uses.of(f"block.{block}.head.{head}.{name}"):
            squares += torch.stack(
                [_total(use, row).double().square().sum().cpu() for row in range(len(squares))]
            )
    return squares.sqrt()


def _total(use: Use, row: int) -> Tensor:
    left = None if use.left is None else use.left[row : row + 1]
    return Use(left, use.right[row : row + 1]).total(0)
