"""The decoder of n-grams: what may come next in many texts at once, each by its own last few words.

Shapes: B rows of a step, V words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.generate.batch_decoder import ReadsOn, Rows


class WindowReading:
    """A text of which only the last words are ever looked at; `logits` (V) are of the word after it."""

    def __init__(self, network: NGram, ids: Sequence[int]) -> None:
        self.network, self.ids = network, network.window(list(ids))
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def read_on(self) -> int:
        if self.logits is not None:
            return 0
        ids = torch.tensor(self.ids, device=self.network.device)
        self.logits = self.network(ids)[-1].float().cpu()
        return len(self.ids)


class WindowDecoder(Rows):
    """A network and the last words of the text in each slot, which is never too little room."""

    longest = math.inf

    def __init__(self, network: NGram, slots: int, whole: bool | None = None) -> None:
        self.network = network
        self.windows: list[list[int]] = [[] for _ in range(slots)]
        super().__init__(network.config, slots, network.device, whole)

    def read(self, ids: Sequence[int]) -> WindowReading:
        return WindowReading(self.network, ids)

    def place(self, slot: int, reading: ReadsOn) -> None:
        assert isinstance(reading, WindowReading)
        self.windows[slot] = list(reading.ids)

    def extend(self, slot: int, position: int) -> None:
        """Only when the first word comes is there something to do: to forget the text before."""
        if position == 0:
            self.windows[slot] = []

    def _widths_alike(self) -> list[int]:
        """All: what is looked up for a row has nothing to do with the other rows."""
        return list(range(1, self.count + 1))

    @torch.inference_mode()
    def _step(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],  # noqa: ARG002 (the last words are all that counts)
        width: int,  # noqa: ARG002
    ) -> Tensor:
        rows = []
        for slot, word in zip(slots, ids, strict=True):
            self.windows[slot] = self.network.window([*self.windows[slot], word])
            rows.append(self.network(torch.tensor(self.windows[slot], device=self.network.device))[-1])
        return torch.stack(rows)
