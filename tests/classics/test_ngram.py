"""The n-gram as a network: the context it uses, its config, and the inputs it rejects."""

import pytest
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_config import NGramConfig
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.errors import UserError
from clearhead.text.tokens import Tokens

V, END = 7, 6


@pytest.fixture
def network():
    ids = torch.randint(V, (400,), generator=torch.Generator().manual_seed(0))
    return estimate(count_ngrams(Tokens.of([END, *ids.tolist(), END]), V, END, 4))


def some_ids(rows=3, length=20):
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(1))


def test_context_stops_at_the_order_and_the_end_token(network):
    ids = torch.tensor([0, 1, 2, 3, 4, 5])
    far, near, ended = ids.clone(), ids.clone(), ids.clone()
    far[2], near[3], ended[4] = 5, 1, END
    assert torch.equal(network(far)[-1], network(ids)[-1])
    assert not torch.equal(network(near)[-1], network(ids)[-1])
    assert torch.equal(network(ended)[-1], network(torch.tensor([END, 5]))[-1])


def test_rows_are_independent_of_other_rows_and_later_tokens(network):
    ids = some_ids()
    logits = network(ids)
    assert logits.shape == (3, 20, V)
    for row, alone in zip(ids, logits, strict=True):
        assert torch.equal(network(row), alone)
    assert torch.equal(network(ids[:, :9]), logits[:, :9])


def test_window_contains_all_the_context_needed(network):
    ids = some_ids(1)[0]
    assert len(network.window(ids.tolist())) == 3
    window = torch.tensor(network.window(ids.tolist()))
    assert torch.equal(network(window)[-1], network(ids)[-1])


def test_config_round_trips_through_json_and_counts_parameters(network):
    config = network.config
    assert NGramConfig.from_json(config.to_json()) == config
    assert sum(each.numel() for each in network.parameters()) == config.n_parameter
    stored = sum(each.numel() * each.itemsize for each in network.state_dict().values())
    assert stored == config.n_byte


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_vocab", 0),
        ("n_vocab", True),
        ("end_id", V),
        ("end_id", -1),
        ("counts", [1, -1]),
        ("counts", [0] * 40),
        ("counts", 3),
        ("counts", [2**50]),
        ("n_context", 0),
        ("heads", 2),
    ],
)
def test_invalid_config_is_rejected(network, setting, value):
    with pytest.raises(UserError, match=setting):
        NGramConfig.from_json({**network.config.to_json(), setting: value})


def test_config_with_a_missing_setting_is_rejected():
    with pytest.raises(UserError, match="'counts' is missing"):
        NGramConfig.from_json({"kind": "ngram", "n_vocab": 3, "end_id": 0})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda order: order.keys.flip(0), "not sorted"),
        (lambda order: order.keys + 10**9, "lack prefixes"),
        (lambda order: order.keys - 10**9, "lack prefixes"),
    ],
)
def test_unsorted_or_dangling_keys_are_rejected(network, change, said):
    network.check()
    network.orders[2].keys = change(network.orders[2])
    with pytest.raises(UserError, match=said):
        network.check()


@pytest.mark.parametrize(("number", "said"), [(float("nan"), "finite"), (0.5, "above 1")])
def test_invalid_probabilities_are_rejected(network, number, said):
    network.orders[1].log_probability.data[3] = number
    with pytest.raises(UserError, match=said):
        network.check()


def test_network_of_any_size_builds_on_the_meta_device():
    with torch.device("meta"):
        network = NGram(NGramConfig(1000, 0, (10**9, 10**9)))
    assert network.orders[2].keys.shape == (10**9,)
