"""Several texts as one padded batch.

Shapes: B texts, T positions of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer


class Batch:
    """`ids` and `padding_mask` (false at padding; None where there is none) are B T; `tokens` the pieces of each."""

    def __init__(self, rows: Sequence[list[int]], tokenizer: Tokenizer, padding: str) -> None:
        if padding not in ("left", "right"):
            raise UserError(f"padding = {padding!r}: expected left or right")
        longest = max(map(len, rows))
        self.ids = torch.full((len(rows), longest), tokenizer.end_id)
        padding_mask = torch.zeros(self.ids.shape, dtype=torch.bool)
        for row, (padded, marks) in zip(rows, zip(self.ids, padding_mask, strict=True), strict=True):
            place = slice(0, len(row)) if padding == "right" else slice(longest - len(row), longest)
            padded[place], marks[place] = torch.tensor(row), True
        self.padding_mask = None if padding_mask.all() else padding_mask
        self.tokens = [tokenizer.pieces(row.tolist()) for row in self.ids]
