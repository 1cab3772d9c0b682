"""The cells of recurrent networks, as formulas: how the state changes with each token.

    elman   h' = tanh(x W + b + h U + c)

    gru     r = σ(x W_r + b_r + h U_r + c_r)            reset gate: how much of the past the proposal sees
            z = σ(x W_z + b_z + h U_z + c_z)            update gate: how much of the past stays
            n = tanh(x W_n + b_n + r (h U_n + c_n))     proposal
            h' = (1 - z) n + z h

    lstm    i, f, o = σ(x W + b + h U + c)              input, forget and output gates
            g = tanh(x W_g + b_g + h U_g + c_g)         proposal
            m' = f m + i g                              cell: a second vector, updated elementwise
            h' = o tanh(m')

`h` is the state, which the next token and the next block receive. The terms x W + b of all gates are
concatenated, and so are the terms h U + c. There are two biases because the GRU's r applies to only one
of them.

Shapes: C features, G gates, with any leading dimensions.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

CellKind = Literal["elman", "gru", "lstm"]
CELLS: tuple[CellKind, ...] = get_args(CellKind)

# The gates, in the order in which their weights are concatenated.
GATES: dict[CellKind, tuple[str, ...]] = {
    "elman": ("state",),
    "gru": ("reset_gate", "update_gate", "proposal"),
    "lstm": ("input_gate", "forget_gate", "proposal", "output_gate"),
}


def take_gates(kind: CellKind, from_token: Tensor, from_state: Tensor) -> dict[str, Tensor]:
    """Each gate by name, from the terms x W + b and h U + c, both … G·C."""
    token_terms, state_terms = from_token.chunk(len(GATES[kind]), -1), from_state.chunk(len(GATES[kind]), -1)
    gates: dict[str, Tensor] = {}
    for name, token, state in zip(GATES[kind], token_terms, state_terms, strict=True):
        if name == "proposal" and kind == "gru":
            gates[name] = torch.tanh(token + gates["reset_gate"] * state)
        elif name in ("proposal", "state"):
            gates[name] = torch.tanh(token + state)
        else:
            gates[name] = torch.sigmoid(token + state)
    return gates


def next_cell(gates: dict[str, Tensor], cell: Tensor) -> Tensor:
    """The LSTM's next cell state."""
    return gates["forget_gate"] * cell + gates["input_gate"] * gates["proposal"]


def next_state(kind: CellKind, gates: dict[str, Tensor], state: Tensor, cell: Tensor | None = None) -> Tensor:
    """The next hidden state: from the previous one, or, for an LSTM, from its next cell state."""
    if kind == "elman":
        return gates["state"]
    if kind == "gru":
        return (1 - gates["update_gate"]) * gates["proposal"] + gates["update_gate"] * state
    assert cell is not None
    return gates["output_gate"] * torch.tanh(cell)
