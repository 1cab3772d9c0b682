"""Recurrent networks: with each word a block changes the state that it carries along, which is all it knows.

The formulas are in `cell.py`; torch's fused kernels, which a test holds to them, do the work.

Shapes: B sequences, T positions, C features, V words, L blocks, P = 1 or, with an LSTM's cell, 2 vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.classics.recurrent_cell import GATES
from clearhead.classics.recurrent_config import RecurrentConfig

FUSED: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class State:
    """What a network carries along of each text it reads: all that is left of the past. L P B C."""

    def __init__(self, room: Tensor) -> None:
        self.room = room

    def take(self, rows: Sequence[int]) -> State:
        """A copy of what is carried along of some of the texts."""
        return State(self.room[:, :, list(rows)])

    def put(self, rows: Sequence[int], other: State) -> None:
        """Let these texts go on from where the first ones of another state are."""
        self.room[:, :, list(rows)] = other.room[:, :, : len(rows)]


class RecurrentBlock(nn.Module):
    """One cell, of each word of which the next block sees the state."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind = config.kind
        self.cell = FUSED[config.kind](config.d_model, config.d_model, batch_first=True)

    def forward(self, x: Tensor, carried: Tensor) -> tuple[Tensor, Tensor]:
        """The state after each word, B T C, and what is then carried along, P B C."""
        parts = tuple(part[None].contiguous() for part in carried)
        states, last = self.cell(x, parts if self.kind == "lstm" else parts[0])
        return states, torch.cat(last) if self.kind == "lstm" else last

    def sums(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """What the formulas call x W + b and h U + c, of the state before each word: B T C → B T G·C."""
        W, U, b, c = self.weights()
        return F.linear(x, W, b), F.linear(before, U, c)

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W and U (G·C C, as torch has them), b and c (G·C)."""
        W, U, b, c = self.cell.parameters()
        return W, U, b, c


class Recurrent(nn.Module):
    """Ids in, logits out; nothing is kept but what a state is given for."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_vocab, config.d_model)
        self.blocks = nn.ModuleList(RecurrentBlock(config) for _ in range(config.n_block))
        self.unembedding = nn.Linear(config.d_model, config.n_vocab, bias=False)
        if config.tied:
            self.unembedding.weight = self.embedding.weight
        self._initialise()

    def begin(self, rows: int = 1) -> State:
        """Of so many texts, before their first word."""
        config, weight = self.config, self.embedding.weight
        parts = 2 if config.kind == "lstm" else 1
        return State(weight.new_zeros(config.n_block, parts, rows, config.d_model))

    def forward(self, ids: Tensor, state: State | None = None) -> Tensor:
        """B T ids to B T V logits. A state goes before, and is then the one after them."""
        return self.unembedding(self.hidden_states(ids, state))

    def hidden_states(self, ids: Tensor, state: State | None = None) -> Tensor:
        """The same as far as the last block, B T C, for those who do not want every position's logits."""
        return self.states(ids, state)[-1]

    def states(self, ids: Tensor, state: State | None = None) -> list[Tensor]:
        """The word vectors, and the state of each block after each word: B T C each."""
        room = self.begin(len(ids)).room if state is None else state.room
        found, carried = [self._thin(self.embedding(ids))], []
        for block, before in zip(self.blocks, room, strict=True):
            x, after = block(found[-1], before)
            found.append(self._thin(x))
            carried.append(after)
        if state is not None:
            state.room = torch.stack(carried)
        return found

    def _thin(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def _initialise(self) -> None:
        """Word vectors of length 1; matrices that a state passes through turn it without shrinking it."""
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)
        nn.init.normal_(self.unembedding.weight, std=self.config.d_model**-0.5)
        for block in self.blocks:
            assert isinstance(block, RecurrentBlock)
            gates = GATES[block.kind]
            W, U, b, c = (weight.detach() for weight in block.weights())
            for part, turning in zip(W.chunk(len(gates)), U.chunk(len(gates)), strict=True):
                nn.init.xavier_uniform_(part)
                nn.init.orthogonal_(turning)
            nn.init.zeros_(b)
            nn.init.zeros_(c)
            if block.kind == "lstm":
                # It remembers, until it learns to forget.
                nn.init.ones_(b.chunk(len(gates))[gates.index("forget_gate")])
