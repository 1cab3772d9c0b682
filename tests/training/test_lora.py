"""Low-rank adapters: the original network plus a low-rank product beside each matrix."""

import pytest
import torch
from torch import nn

from clearhead.formats.network import own_tensors
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.training.lora import adapt, count_parameters, merge

IDS = torch.arange(24).view(2, 12)


def make(kind="modern"):
    torch.manual_seed(0)
    return Transformer(preset(kind, n_vocab=40, n_context=16, n_block=2, n_head=4, n_kv_head=2, d_model=32))


def taught(network, rank=3):
    """Add adapters with nonzero weights, as if trained."""
    adapt(network, rank)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(".B"):
                nn.init.normal_(parameter, std=0.1)
    return network


@pytest.mark.parametrize("kind", ["lecture", "modern"])
@torch.no_grad()
def test_adapted_network_starts_unchanged(kind):
    plain = make(kind)(IDS)
    network = adapt(make(kind), 3)
    assert torch.equal(network.eval()(IDS), plain)
    assert torch.equal(network.train()(IDS), plain)


@pytest.mark.parametrize("kind", ["lecture", "modern"])
@torch.no_grad()
def test_merged_network_computes_the_same_output(kind):
    network = taught(make(kind))
    beside = network.train()(IDS)
    merged = network.eval()(IDS)
    assert not torch.allclose(beside, make(kind)(IDS), atol=1e-2)
    assert torch.allclose(merged, beside, rtol=0, atol=1e-5)
    tensors = own_tensors(network)
    again = merge(network)
    assert torch.equal(again(IDS), merged)
    assert count_parameters(again) == again.config.n_parameter
    assert tensors.keys() == own_tensors(again).keys() == own_tensors(make(kind)).keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in own_tensors(again).items())


def test_only_adapter_parameters_are_trainable():
    network = adapt(make(), 3)
    config = network.config
    d, queries, shared, hidden = 32, 32, 16, config.d_hidden
    thin = (d + queries) * 2 + (d + shared) * 2 + (d + hidden) * 3
    assert count_parameters(network) == config.n_block * 3 * thin
    assert {name.rsplit(".")[-1] for name, each in network.named_parameters() if each.requires_grad} == {
        "A",
        "B",
    }


def test_eval_output_follows_training():
    """This holds even when the network was first run in inference mode."""
    network = adapt(make(), 3).eval()
    with torch.inference_mode():
        before = network(IDS).clone()
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], fused=True, lr=0.01)
    for _ in range(3):
        network.train()
        network(IDS).square().mean().backward()
        optimizer.step()
        beside = network(IDS).detach()
        assert torch.allclose(network.eval()(IDS), beside, rtol=0, atol=1e-5)
    assert not torch.allclose(before, beside, atol=1e-3)
    stream = torch.randn(1, 4, 32, requires_grad=True)
    network.blocks[0].attention.query(stream).sum().backward()
    assert stream.grad.isfinite().all()


def test_adapters_are_merged_in_full_precision_under_autocast():
    network = taught(make()).eval()
    expected = network.blocks[0].attention.query.weight.clone()
    network.train().eval()
    with torch.autocast("cpu", torch.bfloat16):
        network(IDS)
    assert torch.equal(network.blocks[0].attention.query.weight, expected)


def test_changes_made_in_eval_mode_are_visible_too():
    network = taught(make()).eval()
    layer = network.blocks[0].attention.query
    before = layer.weight
    assert layer.weight is before
    with torch.no_grad():
        layer.B.copy_(torch.zeros_like(layer.B))
    assert torch.equal(layer.weight, layer.frozen)


def test_merging_without_adapters_changes_nothing():
    network = make()
    layers = list(network.modules())
    assert list(merge(network).modules()) == layers
