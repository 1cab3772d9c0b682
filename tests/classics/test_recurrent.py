"""Recurrent networks: the fused kernels against the formulas, reimplemented here in float64."""

import numpy as np
import pytest
import torch

from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CELLS, next_cell, next_state, take_gates
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.networks import config_from_json, make_network

SIZES = {"n_vocab": 11, "n_context": 8, "n_block": 2, "d_model": 6}


def make(kind, **more):
    torch.manual_seed(0)
    network = Recurrent(RecurrentConfig(kind, **{**SIZES, **more})).double().eval()
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))  # perturb the biases too
    return network


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elman(x, h, c, W, U, b, d):
    return np.tanh(x @ W + b + h @ U + d), c


def gru(x, h, c, W, U, b, d):
    (W_r, W_z, W_n), (U_r, U_z, U_n) = np.split(W, 3, 1), np.split(U, 3, 1)
    (b_r, b_z, b_n), (d_r, d_z, d_n) = np.split(b, 3), np.split(d, 3)
    r = sigmoid(x @ W_r + b_r + h @ U_r + d_r)
    z = sigmoid(x @ W_z + b_z + h @ U_z + d_z)
    n = np.tanh(x @ W_n + b_n + r * (h @ U_n + d_n))
    return (1 - z) * n + z * h, c


def lstm(x, h, c, W, U, b, d):
    i, f, g, o = np.split(x @ W + b + h @ U + d, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


FORMULAS = {"elman": elman, "gru": gru, "lstm": lstm}


def by_hand(network, ids):
    """Logits computed token by token in plain NumPy."""
    table = network.embedding.weight.detach().numpy()
    weights = []
    for block in network.blocks:
        W, U, b, d = (weight.detach().numpy() for weight in block.weights())
        weights.append((W.T, U.T, b, d))
    carried = [(np.zeros(6), np.zeros(6)) for _ in weights]
    rows = []
    for i in ids:
        x = table[i]
        for number, each in enumerate(weights):
            carried[number] = FORMULAS[network.config.kind](x, *carried[number], *each)
            x = carried[number][0]
        rows.append(x @ network.unembedding.weight.detach().numpy().T)
    return np.stack(rows)


@pytest.mark.parametrize("kind", CELLS)
@torch.no_grad()
def test_network_matches_the_formulas(kind):
    network, ids = make(kind), [3, 1, 4, 1, 5, 9, 2, 6]
    found = network(torch.tensor([ids]))[0].numpy()
    np.testing.assert_allclose(found, by_hand(network, ids), atol=1e-12)


@pytest.mark.parametrize("kind", CELLS)
@torch.no_grad()
def test_step_functions_match_the_fused_kernels(kind):
    network, ids = make(kind), torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    x, states = network.states(ids)[:2]
    block = network.blocks[0]
    state = cell = torch.zeros(2, 6, dtype=torch.float64)
    for t in range(5):
        gates = take_gates(kind, *block.sums(x[:, t], state))
        cell = next_cell(gates, cell) if kind == "lstm" else cell
        state = next_state(kind, gates, state, cell)
        torch.testing.assert_close(state, states[:, t], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", CELLS)
@torch.no_grad()
def test_processing_in_parts_with_state_matches_one_pass(kind):
    network, ids = make(kind), torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])
    whole, state = network(ids), network.begin(2)
    parts = torch.cat([network(part, state) for part in ids.split([3, 1, 4], dim=1)], dim=1)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-12)
    # Rows can be taken out of one state and put into another.
    one, begun = state.take([1]), network.begin(3)
    begun.put([2], one)
    after = network(torch.tensor([[7]]), one)
    # Products of several rows may round differently from products of one.
    assert torch.allclose(network(torch.tensor([[7]] * 3), begun)[2:], after, rtol=0, atol=1e-12)
    assert torch.allclose(begun.take([2]).data, one.data, rtol=0, atol=1e-12)
    more = torch.cat((ids[1:], torch.tensor([[7]])), dim=1)
    torch.testing.assert_close(after[:, -1], network(more)[:, -1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("tied", [True, False])
def test_parameter_count_matches_the_config(kind, tied):
    config = RecurrentConfig(kind, **SIZES, tied=tied)
    assert sum(each.numel() for each in make_network(config).parameters()) == config.n_parameter
    assert config_from_json(config.to_json()) == config


def test_dropout_applies_only_during_training():
    network = make("gru", dropout=0.5)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    assert torch.equal(network(ids), network(ids))
    network.train()
    assert not torch.equal(network(ids), network(ids))


def test_lstm_forget_gate_bias_starts_at_one():
    """The cell then keeps most of its contents from one token to the next."""
    network = Recurrent(RecurrentConfig("lstm", **SIZES))
    b = network.blocks[0].weights()[2]
    assert b.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "rnn"}, "kind = 'rnn': expected one of elman, gru, lstm"),
        ({"d_model": 0}, "d_model = 0: expected an integer from 1 to"),
        ({"n_block": True}, "n_block = True: expected an integer"),
        ({"dropout": 1.0}, "dropout = 1.0: expected a number between 0 and 1"),
        ({"tied": 1}, "tied = 1: expected true or false"),
        ({"n_head": 2}, "unknown setting 'n_head'"),
    ],
)
def test_invalid_settings_are_rejected(settings, words):
    with pytest.raises(UserError, match=words):
        RecurrentConfig.from_json({"kind": "lstm", **SIZES, **settings})


def test_missing_settings_and_unknown_kinds_are_rejected():
    with pytest.raises(UserError, match="setting 'd_model' is missing"):
        config_from_json({"kind": "gru", "n_vocab": 3, "n_context": 4, "n_block": 1})
    with pytest.raises(UserError, match="kind = 'mamba': expected one of transformer, elman, gru, lstm"):
        config_from_json({"kind": "mamba"})
