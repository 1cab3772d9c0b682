"""Several texts as one padded batch, and what may be given as a text.

Shapes: B texts, T positions of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer


class Batch:
    """`ids` and `real` (false at padding; None where there is none) are B T; `tokens` the pieces of each."""

    def __init__(self, rows: Sequence[Tensor], tokenizer: Tokenizer, padding: str) -> None:
        if padding not in ("left", "right"):
            raise UserError(f"padding = {padding!r}: expected left or right")
        longest = max(map(len, rows))
        self.ids = torch.full((len(rows), longest), tokenizer.end_id)
        real = torch.zeros(self.ids.shape, dtype=torch.bool)
        for row, (padded, marks) in zip(rows, zip(self.ids, real, strict=True), strict=True):
            place = slice(0, len(row)) if padding == "right" else slice(longest - len(row), longest)
            padded[place], marks[place] = row, True
        self.real = None if real.all() else real
        self.tokens = [tokenizer.pieces(row.tolist()) for row in self.ids]


def several(given: Any) -> tuple[list[Any], bool]:
    """The texts, each a str or a list of ids, and whether there is but one."""
    if isinstance(given, str):
        return [given], True
    listed = given.tolist() if isinstance(given, Tensor) else given
    if not isinstance(listed, list | tuple) or not listed:
        raise UserError(f"the text is {str(given)[:60]!r}: expected a str, ids, or a list of texts")
    if all(type(i) is int for i in listed):
        return [list(listed)], True
    for each in listed:
        is_ids = isinstance(each, list) and each and all(type(i) is int for i in each)
        if not isinstance(each, str) and not is_ids:
            raise UserError(f"one of the texts is {str(each)[:60]!r}: expected a str, or ids")
    return list(listed), False
