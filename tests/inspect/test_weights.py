import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.weights import weight, weight_names
from tests.inspect.conftest import uncapped


def test_weights_reproduce_the_sites(inspect, network):
    """For example, x W_Q + b_Q equals query_raw, and likewise through the feed-forward network."""
    trace = inspect()
    names = weight_names(network.config)

    def through(x, matrix, bias):
        out = x @ weight(network, matrix)
        return out + weight(network, bias) if bias in names else out

    for i in range(3):
        at = f"block.{i}"
        for j in range(4):
            head = f"{at}.head.{j}"
            for role, site in (("Q", "query_raw"), ("K", "key_raw"), ("V", "value")):
                actual = through(trace[f"{at}.normed"], f"{head}.W_{role}", f"{head}.b_{role}")
                assert torch.allclose(actual, trace[f"{head}.{site}"], atol=1e-5)
            output = trace[f"{head}.mixed"] @ weight(network, f"{head}.W_O")
            assert torch.allclose(output, trace[f"{head}.output"], atol=1e-5)
        assert torch.allclose(
            through(trace[f"{at}.hidden"], f"{at}.W_2", f"{at}.b_2"), trace[f"{at}.feedforward"], atol=1e-4
        )
    assert torch.allclose(trace["final"] @ weight(network, "unembedding.W"), uncapped(trace), atol=1e-4)


def test_every_weight_name_works_and_products_match(network):
    for name in weight_names(network.config):
        assert isinstance(weight(network, name), torch.Tensor), name
    head = "block.1.head.3"
    W = {name: weight(network, f"{head}.{name}") for name in ("W_Q", "W_K", "W_V", "W_O", "QK", "OV")}
    assert torch.equal(W["QK"], W["W_Q"] @ W["W_K"].T)
    assert torch.equal(W["OV"], W["W_V"] @ W["W_O"])
    assert W["QK"].shape == W["OV"].shape == (24, 24)


def test_unknown_weight_error_lists_the_valid_names(network):
    for name in ("block.0.head.0.W_X", "W"):
        with pytest.raises(UserError, match="expected one of embedding"):
            weight(network, name)
    for name, known in (("block.9.W_1", "blocks 0 to 2"), ("block.0.head.7.W_Q", "heads 0 to 3")):
        with pytest.raises(UserError, match=known):
            weight(network, name)
