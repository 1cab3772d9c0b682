"""Decoders for recurrent networks and n-gram models.

A recurrent network keeps a state, and an n-gram model the last few tokens, so neither has a context that
can fill up.

Shapes: N samples of one prompt, B rows of a step, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.generate.batch_decoder import BatchDecoder, ChunkedPrefill

WIDTH = 8  # rows of every recurrent step on the CPU, so that a row's numbers never depend on the batch


class RecurrentDecoder:
    """A `Decoder` whose memory is the recurrent state."""

    def __init__(self, network: Recurrent, samples: int = 1) -> None:
        self.network, self.state = network, network.begin(samples)

    @torch.inference_mode()
    def prefill(self, ids: Tensor) -> Tensor:
        return self.network.unembedding(
            self.network.hidden_states(ids.to(self.state.data.device), self.state)[:, -1]
        )

    def decode_one(self, ids: Tensor) -> Tensor:
        return self.prefill(ids)

    def reorder(self, rows: Sequence[int]) -> None:
        self.state = self.state.take(rows)


class NGramDecoder:
    """A `Decoder` whose memory is the last `order - 1` tokens."""

    def __init__(self, network: NGram, samples: int = 1) -> None:
        self.network = network
        self.windows: list[list[int]] = [[] for _ in range(samples)]

    @torch.inference_mode()
    def prefill(self, ids: Tensor) -> Tensor:
        rows = zip(self.windows, ids.tolist(), strict=True)
        self.windows = [self.network.window([*window, *new]) for window, new in rows]
        return self.network(torch.tensor(self.windows, device=self.network.device))[:, -1]

    def decode_one(self, ids: Tensor) -> Tensor:
        return self.prefill(ids)

    def reorder(self, rows: Sequence[int]) -> None:
        self.windows = [self.windows[row] for row in rows]


class RecurrentPrefill:
    """A `ChunkedPrefill` that carries the recurrent state from chunk to chunk."""

    def __init__(self, network: Recurrent, ids: Sequence[int], chunk_size: int) -> None:
        self.network, self.chunk_size, self.state = network, chunk_size, network.begin()
        self.remaining = torch.tensor([ids], device=self.state.data.device)
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def run_chunk(self) -> int:
        if self.logits is not None:
            return 0
        chunk, self.remaining = self.remaining[:, : self.chunk_size], self.remaining[:, self.chunk_size :]
        states = self.network.hidden_states(chunk, self.state)
        if not self.remaining.shape[1]:
            self.logits = self.network.unembedding(states[0, -1:])[0].float().cpu()
        return chunk.shape[1]


class RecurrentBatchDecoder(BatchDecoder):
    """A recurrent network with a state per slot."""

    max_length = math.inf

    def __init__(self, network: Recurrent, slots: int, full_width: bool | None = None) -> None:
        self.network, self.state = network, network.begin(max(slots, WIDTH))
        super().__init__(network.config, slots, self.state.data.device, full_width)

    def _find_widths(self) -> list[int]:
        if self.full_width:
            return super()._find_widths()
        return [1] if self._probe(WIDTH) is None else [WIDTH]

    def prefill(self, ids: Sequence[int]) -> RecurrentPrefill:
        return RecurrentPrefill(self.network, ids, self.chunk_size)

    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        assert isinstance(prefill, RecurrentPrefill)
        self.state.put([slot], prefill.state)

    def extend(self, slot: int, position: int) -> None:
        """Clear the state left in the slot by an earlier sequence."""
        if position == 0:
            self.state.put([slot], self.network.begin())

    @torch.inference_mode()
    def _step(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],  # noqa: ARG002 (a state has no positions)
        width: int,
    ) -> Tensor:
        padding = [0] * (width - len(slots))
        state = self.state.take([*slots, *padding])
        tokens = torch.tensor([*ids, *padding], device=state.data.device)[:, None]
        logits = self.network(tokens, state)
        self.state.put(slots, state)
        return logits[: len(slots), 0]


class NGramPrefill:
    """A `ChunkedPrefill` in one chunk: only the last few tokens of the prompt are looked up."""

    def __init__(self, network: NGram, ids: Sequence[int]) -> None:
        self.network, self.ids = network, network.window(list(ids))
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def run_chunk(self) -> int:
        if self.logits is not None:
            return 0
        ids = torch.tensor(self.ids, device=self.network.device)
        self.logits = self.network(ids)[-1].float().cpu()
        return len(self.ids)


class NGramBatchDecoder(BatchDecoder):
    """An n-gram model with the last few tokens of the sequence in each slot."""

    max_length = math.inf

    def __init__(self, network: NGram, slots: int, full_width: bool | None = None) -> None:
        self.network = network
        self.windows: list[list[int]] = [[] for _ in range(slots)]
        super().__init__(network.config, slots, network.device, full_width)

    def prefill(self, ids: Sequence[int]) -> NGramPrefill:
        return NGramPrefill(self.network, ids)

    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        assert isinstance(prefill, NGramPrefill)
        self.windows[slot] = list(prefill.ids)

    def extend(self, slot: int, position: int) -> None:
        """Clear the tokens left in the slot by an earlier sequence."""
        if position == 0:
            self.windows[slot] = []

    def _find_widths(self) -> list[int]:
        """Return all widths: rows are looked up one by one."""
        return list(range(1, self.n_slot + 1))

    @torch.inference_mode()
    def _step(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],  # noqa: ARG002 (a window has no positions)
        width: int,  # noqa: ARG002
    ) -> Tensor:
        rows = []
        for slot, token in zip(slots, ids, strict=True):
            self.windows[slot] = self.network.window([*self.windows[slot], token])
            rows.append(self.network(torch.tensor(self.windows[slot], device=self.network.device))[-1])
        return torch.stack(rows)
