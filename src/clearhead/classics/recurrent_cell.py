"""The cells of recurrent networks, as formulas: what becomes of a state when the next word comes.

    elman   h' = tanh(x W + b + h U + c)

    gru     r = σ(x W_r + b_r + h U_r + c_r)            how much of the past the proposal sees
            z = σ(x W_z + b_z + h U_z + c_z)            how much of the past stays
            n = tanh(x W_n + b_n + r (h U_n + c_n))     the proposal
            h' = (1 - z) n + z h

    lstm    i, f, o = σ(x W + b + h U + c)              what is let in, what is kept, what is shown
            g = tanh(x W_g + b_g + h U_g + c_g)         the proposal
            m' = f m + i g                              the cell: a second vector, changed by adding alone
            h' = o tanh(m')

`h` is the state, which the next word and the next block see. The sums x W + b of all gates stand side by
side, and so do the sums h U + c: there are two biases because of the GRU, whose r falls on one of them alone.

Shapes: C features, G gates; anything may stand in front.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

CellKind = Literal["elman", "gru", "lstm"]
CELLS: tuple[CellKind, ...] = get_args(CellKind)

# The gates, in the order in which their weights stand side by side.
GATES: dict[CellKind, tuple[str, ...]] = {
    "elman": ("state",),
    "gru": ("reset_gate", "update_gate", "proposal"),
    "lstm": ("input_gate", "forget_gate", "proposal", "output_gate"),
}


def take_gates(kind: CellKind, from_word: Tensor, from_state: Tensor) -> dict[str, Tensor]:
    """Each gate by name, of the sums x W + b and h U + c: … G·C both."""
    words, states = from_word.chunk(len(GATES[kind]), -1), from_state.chunk(len(GATES[kind]), -1)
    gates: dict[str, Tensor] = {}
    for name, word, state in zip(GATES[kind], words, states, strict=True):
        if name == "proposal" and kind == "gru":
            gates[name] = torch.tanh(word + gates["reset_gate"] * state)
        elif name in ("proposal", "state"):
            gates[name] = torch.tanh(word + state)
        else:
            gates[name] = torch.sigmoid(word + state)
    return gates


def next_cell(gates: dict[str, Tensor], cell: Tensor) -> Tensor:
    """What an LSTM remembers."""
    return gates["forget_gate"] * cell + gates["input_gate"] * gates["proposal"]


def next_state(kind: CellKind, gates: dict[str, Tensor], state: Tensor, cell: Tensor | None = None) -> Tensor:
    """The state after a word, of the one before; an LSTM's of its cell after the word."""
    if kind == "elman":
        return gates["state"]
    if kind == "gru":
        return (1 - gates["update_gate"]) * gates["proposal"] + gates["update_gate"] * state
    assert cell is not None
    return gates["output_gate"] * torch.tanh(cell)
