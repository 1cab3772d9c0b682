"""Loss by position: sums to the plain loss, with each value at the correct position."""

import numpy as np
import pytest
import torch

from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokens import Tokens
from clearhead.training.objective import evaluate
from clearhead.training.position_loss import PositionLoss, bits_per_byte, measure_positions

T = 8


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Transformer(preset("gpt2", n_vocab=11, n_context=T, n_block=1, n_head=2, d_model=8))


@pytest.fixture
def tokens():
    return Tokens.of(np.random.default_rng(0).integers(11, size=5 * T + 3))


def test_positions_add_up_to_the_total_loss(network, tokens):
    losses = measure_positions(network, windows_for_evaluation(tokens, T, 2, before=0), T)
    assert losses.tokens == len(tokens)
    assert losses.counts.tolist() == [6, 6, 6, 5, 5, 5, 5, 5]
    plain = evaluate(network, windows_for_evaluation(tokens, T, 2, before=0))
    assert losses.total / losses.tokens == pytest.approx(plain, rel=1e-5)


def test_position_loss_matches_a_manual_computation(network, tokens):
    losses = measure_positions(network, windows_for_evaluation(tokens, T, 2, before=0), T)
    ids = [0, *tokens[:].tolist()]
    by_hand = 0.0
    for start in range(0, len(tokens), T):
        if start + 4 > len(tokens):
            continue
        with torch.no_grad():
            logits = network(torch.tensor([ids[start : start + 4]]))[0, 3]
        by_hand -= logits.log_softmax(-1)[ids[start + 4]].item()
    assert losses.sums[3].item() == pytest.approx(by_hand, rel=1e-5)


def test_bin_widths_double():
    losses = PositionLoss(torch.arange(6.0), torch.ones(6))
    assert losses.bins() == [(1.0, 0.0), (2.0, 1.0), (3.5, 2.5), (5.5, 4.5)]
    assert PositionLoss(torch.ones(2), torch.tensor([1.0, 0.0])).bins() == [(1.0, 1.0)]


def test_bits_per_byte():
    assert bits_per_byte(8 * np.log(2), 4) == pytest.approx(2)
