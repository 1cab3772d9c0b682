"""The decoder of recurrent networks: what may come next in many texts at once, each by its own state alone.

Shapes: B rows of a step, V words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.classics.recurrent import Recurrent
from clearhead.generate.batch_decoder import ReadsOn, Rows

WIDTH = 8  # rows of every step on a processor, so that a text's numbers are the same in any company


class StateReading:
    """A text that is read by itself, a piece at a time; `logits` (V) are of the word after it, once read."""

    def __init__(self, network: Recurrent, ids: Sequence[int], size: int) -> None:
        self.network, self.size, self.state = network, size, network.begin()
        self.unread = torch.tensor([ids], device=self.state.room.device)
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def read_on(self) -> int:
        if self.logits is not None:
            return 0
        piece, self.unread = self.unread[:, : self.size], self.unread[:, self.size :]
        states = self.network.hidden_states(piece, self.state)
        if not self.unread.shape[1]:
            self.logits = self.network.unembedding(states[0, -1:])[0].float().cpu()
        return piece.shape[1]


class StateDecoder(Rows):
    """A network and what it carries along for each slot, which is never too little room."""

    longest = math.inf

    def __init__(self, network: Recurrent, slots: int, whole: bool | None = None) -> None:
        self.network, self.state = network, network.begin(max(slots, WIDTH))
        super().__init__(network.config, slots, self.state.room.device, whole)

    def _widths_alike(self) -> list[int]:
        if self.whole:
            return super()._widths_alike()
        return [1] if self._same_rows(WIDTH) is None else [WIDTH]

    def read(self, ids: Sequence[int]) -> StateReading:
        return StateReading(self.network, ids, self.piece)

    def place(self, slot: int, reading: ReadsOn) -> None:
        assert isinstance(reading, StateReading)
        self.state.put([slot], reading.state)

    def extend(self, slot: int, position: int) -> None:
        """Only when the first word comes is there something to do: to forget the text before."""
        if position == 0:
            self.state.put([slot], self.network.begin())

    @torch.inference_mode()
    def _step(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],  # noqa: ARG002 (a state knows no positions)
        width: int,
    ) -> Tensor:
        padding = [0] * (width - len(slots))
        state = self.state.take([*slots, *padding])
        words = torch.tensor([*ids, *padding], device=state.room.device)[:, None]
        logits = self.network(words, state)
        self.state.put(slots, state)
        return logits[: len(slots), 0]
