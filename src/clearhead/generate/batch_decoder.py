"""Steps of many texts at once, a row each, whose numbers do not depend on what the other rows are.

A step has one row a slot, whatever is in the slots. On a processor it may also be narrower, of the slots in
use and some padding: there matrix products mostly give a row the same numbers whatever their width. Whether
they do, and whether they treat all rows alike, is tried out at the start; a width for which it does not hold
is not used.

Shapes: B rows of a step, V words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from clearhead.networks import AnyConfig

# Words of a prompt that are read between two steps: on a processor they take as long as a step of as many
# rows, on other devices hardly longer than a step.
PIECE, WIDE_PIECE = 32, 512
TRIED = 16  # times that a block is run to see whether all rows of a step are treated alike


class ReadsOn(Protocol):
    """A text that is read by itself, a piece at a time; `logits` (V) are of the word after it, once read."""

    logits: Tensor | None

    def read_on(self) -> int:
        """Read the next piece, if one is left; how many words it had."""
        ...


class Rows(ABC):
    """Where `whole`, as it is off the processor, a step is always of all slots."""

    longest: float  # words that a slot has room for; a text of more is read anew, as far as they go

    def __init__(self, config: AnyConfig, count: int, device: torch.device, whole: bool | None) -> None:
        """To be called when steps can be made."""
        self.config, self.count = config, count
        self.piece = PIECE if device.type == "cpu" else WIDE_PIECE
        self.whole = device.type != "cpu" if whole is None else whole
        self.widths = [count]
        self.widths = self._widths_alike()

    @abstractmethod
    def read(self, ids: Sequence[int]) -> ReadsOn:
        """Begin to read a text."""

    @abstractmethod
    def place(self, slot: int, reading: ReadsOn) -> None:
        """Put a text that was read by itself into a slot."""

    @abstractmethod
    def extend(self, slot: int, position: int) -> None:
        """Make sure of room for a word at this position, the next one of the slot's text."""

    @abstractmethod
    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        """The logits of the words after these, B V; so many rows are computed as the width is."""

    def step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Read the next word of the text in each of these slots, given in order: B V logits, in memory.

        A text whose slot is left out may be lost.
        """
        if self.whole:
            # A slot that is not in use has a row too; what it writes there, the next text writes over.
            words = dict(zip(slots, zip(ids, positions, strict=True), strict=True))
            ids, positions = zip(*(words.get(slot, (0, 0)) for slot in range(self.count)), strict=True)
            return self._step(range(self.count), ids, positions, self.count)[list(slots)].float().cpu()
        width = next(width for width in self.widths if width >= min(len(slots), self.widths[-1]))
        parts = [slice(i, i + width) for i in range(0, len(slots), width)]
        logits = torch.cat([self._step(slots[part], ids[part], positions[part], width) for part in parts])
        return logits.float().cpu()

    def _widths_alike(self) -> list[int]:
        """The widths whose rows all get the same numbers, those that they get in the full width.

        Tried with the same text in every row. Where not even the full width's rows agree, each row is a
        step of its own.
        """
        expected = self._same_rows(self.count)
        if expected is None:
            self.whole = False
            return [1]
        if self.whole:
            return [self.count]
        halves = [2**i for i in range(1, self.count.bit_length()) if 2**i < self.count]
        found = [self._same_rows(width) for width in halves]
        alike = [w for w, row in zip(halves, found, strict=True) if row is not None and row.equal(expected)]
        return [*alike, self.count]

    def _same_rows(self, width: int) -> Tensor | None:
        """What each row of this width makes of the same few words, or None if they differ."""
        config, rows = self.config, list(range(width))
        count = min(config.n_context, -(-TRIED // getattr(config, "n_block", 1)))
        tables = []
        for position in range(count):
            for slot in rows:
                self.extend(slot, position)
            word = position * config.n_vocab // count
            tables.append(self._step(rows, [word] * width, [position] * width, width))
        table = torch.stack(tables, dim=1)
        return table[0] if table.equal(table[:1].expand_as(table)) else None
