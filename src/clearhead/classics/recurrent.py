"""Recurrent networks: at each token, a block updates the state that it carries along.

The formulas are in `recurrent_cell.py`. The computation uses torch's fused kernels, which a test compares
with the formulas.

Shapes: B sequences, T positions, C features, V tokens, L blocks, P = 1 vector, or 2 with an LSTM's cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from clearhead.classics.recurrent_cell import GATES
from clearhead.classics.recurrent_config import RecurrentConfig

FUSED: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class State:
    """The recurrent state of each sequence: all that remains of the past. L P B C."""

    def __init__(self, data: Tensor) -> None:
        self.data = data

    def take(self, rows: Sequence[int]) -> State:
        """A copy of the state of some sequences."""
        return State(self.data[:, :, list(rows)])

    def put(self, rows: Sequence[int], other: State) -> None:
        """Set the state of these sequences from the first sequences of another state."""
        self.data[:, :, list(rows)] = other.data[:, :, : len(rows)]


class RecurrentBlock(nn.Module):
    """One recurrent layer; the next block receives its state at each token."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.kind = config.kind
        self.cell = FUSED[config.kind](config.d_model, config.d_model, batch_first=True)

    def forward(self, x: Tensor, carried: Tensor) -> tuple[Tensor, Tensor]:
        """The state after each token, B T C, and the final state, P B C."""
        parts = tuple(part[None].contiguous() for part in carried)
        states, last = self.cell(x, parts if self.kind == "lstm" else parts[0])
        return states, torch.cat(last) if self.kind == "lstm" else last

    def sums(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """The terms x W + b and h U + c of the formulas, given the state before each token: B T C → B T G·C."""
        W, U, b, c = self.weights()
        return F.linear(x, W, b), F.linear(before, U, c)

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W and U (G·C C, as torch stores them), b and c (G·C)."""
        W, U, b, c = self.cell.parameters()
        return W, U, b, c


class Recurrent(nn.Module):
    """Token ids in, logits out; the state passed in is the only memory between calls."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_vocab, config.d_model)
        self.blocks = nn.ModuleList(RecurrentBlock(config) for _ in range(config.n_block))
        self.unembedding = nn.Linear(config.d_model, config.n_vocab, bias=False)
        if config.tied:
            self.unembedding.weight = self.embedding.weight
        self._initialize()

    def begin(self, rows: int = 1) -> State:
        """The state of this many sequences before their first token."""
        config, weight = self.config, self.embedding.weight
        parts = 2 if config.kind == "lstm" else 1
        return State(weight.new_zeros(config.n_block, parts, rows, config.d_model))

    def forward(self, ids: Tensor, state: State | None = None, documents: Tensor | None = None) -> Tensor:
        """B T ids to B T V logits. If given, `state` holds the preceding context and is updated in place.

        `documents` (B T) numbers the documents of each row; the state is reset at the start of each document.
        """
        return self.unembed(self.hidden_states(ids, state, documents))

    def unembed(self, final: Tensor) -> Tensor:
        """The logits, from the hidden states: … C → … V."""
        return self.unembedding(final)

    def hidden_states(
        self, ids: Tensor, state: State | None = None, documents: Tensor | None = None
    ) -> Tensor:
        """The output of the last block, B T C, for callers that do not need logits at every position."""
        if documents is None:
            return self.states(ids, state)[-1]
        assert state is None, "packed documents have no preceding context"
        return self._separate_states(ids, documents)

    def _separate_states(self, ids: Tensor, documents: Tensor) -> Tensor:
        """The output of the last block, B T C, with each document read as a separate sequence."""
        lengths = [
            length
            for row in documents
            for length in torch.unique_consecutive(row, return_counts=True)[1].tolist()
        ]
        x = self._thin(self.embedding(ids)).flatten(0, 1)
        for block in self.blocks:
            assert isinstance(block, RecurrentBlock)
            packed = pack_sequence(list(x.split_with_sizes(lengths)), enforce_sorted=False)
            states, _ = block.cell(packed)
            x = self._thin(torch.cat(unpack_sequence(states)))
        return x.view(*ids.shape, -1)

    def states(self, ids: Tensor, state: State | None = None) -> list[Tensor]:
        """The token vectors, and the state of each block after each token: B T C each."""
        data = self.begin(len(ids)).data if state is None else state.data
        found, carried = [self._thin(self.embedding(ids))], []
        for block, before in zip(self.blocks, data, strict=True):
            x, after = block(found[-1], before)
            found.append(self._thin(x))
            carried.append(after)
        if state is not None:
            state.data = torch.stack(carried)
        return found

    def _thin(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def _initialize(self) -> None:
        """Token vectors of norm about 1; orthogonal recurrent matrices, which preserve the state's norm."""
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
                # Forget gates start open.
                nn.init.ones_(b.chunk(len(gates))[gates.index("forget_gate")])
