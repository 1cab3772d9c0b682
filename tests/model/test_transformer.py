"""Invariants of every config: causality, caching, padding, independence of rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.model.config import PRESETS, Config, preset
from clearhead.model.kv_cache import KVCache
from clearhead.model.transformer import Transformer

CHOICES = PRESETS | {
    "shared keys": {**PRESETS["modern"], "n_kv_head": 2},
    "wide heads": {**PRESETS["modern"], "d_head": 16},
    "sinusoidal": {**PRESETS["gpt2"], "position": "sinusoidal"},
    "no position": {**PRESETS["gpt2"], "position": "none"},
    "rotary with layer norm": {**PRESETS["lecture"], "position": "rotary"},
    "gated gelu, untied": {**PRESETS["modern"], "feedforward": "geglu", "tied": False},
    "exact gelu, no bias": {**PRESETS["lecture"], "feedforward": "gelu", "qkv_bias": False},
}


def make(choice: str, **more: object) -> Transformer:
    torch.manual_seed(0)
    sizes = {"n_vocab": 23, "n_context": 12, "n_block": 2, "n_head": 4, "d_model": 32}
    network = Transformer(Config.from_json({**sizes, **CHOICES[choice], **more})).eval()
    for parameter in network.parameters():  # away from the initial weights, many of which are near zero
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return network


def some_ids(rows: int = 2, length: int = 12) -> torch.Tensor:
    return torch.randint(23, (rows, length), generator=torch.Generator().manual_seed(1))


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("choice", CHOICES)
@settings(max_examples=10)
@given(j=st.integers(0, 11), token=st.integers(0, 22))
def test_changing_a_token_never_changes_earlier_logits(choice, j, token):
    network, ids = make(choice), some_ids(1)
    changed = ids.clone()
    changed[0, j] = token
    before, after = network(ids), network(changed)
    assert torch.equal(before[:, :j], after[:, :j])
    assert torch.equal(before, after) == torch.equal(ids, changed)


def test_bidirectional_models_see_later_tokens():
    network, ids = make("modern", causal=False), some_ids(1)
    changed = ids.clone()
    changed[0, 11] = (ids[0, 11] + 1) % 23
    assert not close(network(ids)[:, 0], network(changed)[:, 0])


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("parts", [[12], [1] * 12, [5, 1, 1, 5], [3, 4, 5]])
def test_cached_decoding_matches_uncached(choice, parts):
    network, ids = make(choice), some_ids()
    cache = KVCache(network.config, batch=2)
    logits = torch.cat([network(part, cache=cache) for part in ids.split(parts, dim=1)], dim=1)
    assert cache.length == 12
    assert close(logits, network(ids))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_do_not_depend_on_padding(choice, causal, side):
    network, ids = make(choice, causal=causal), some_ids(1, 7)
    alone = network(ids)
    for padding in (0, 22):
        pad = torch.full((1, 5), padding)
        padded = torch.cat((pad, ids) if side == "left" else (ids, pad), dim=1)
        padding_mask = torch.ones_like(padded, dtype=torch.bool)
        kept = slice(5, None) if side == "left" else slice(0, 7)
        padding_mask[:] = False
        padding_mask[:, kept] = True
        logits = network(padded, padding_mask=padding_mask)
        assert logits.isfinite().all()
        assert close(logits[:, kept], alone)


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_do_not_depend_on_each_other(choice):
    network, ids = make(choice), some_ids(3)
    assert close(network(ids)[1:2], network(ids[1:2]))


@pytest.mark.parametrize("cached", [False, True])
def test_sequences_beyond_the_context_are_rejected(cached):
    network = make("lecture")
    cache = KVCache(network.config) if cached else None
    if cache is not None:
        network(some_ids(1, 10), cache=cache)
    with pytest.raises(UserError, match="13 tokens exceed the context of 12"):
        network(some_ids(1, 3 if cached else 13), cache=cache)


def test_initial_loss_is_that_of_uniform_guessing():
    """A new network should assign about the same probability to every token."""
    torch.manual_seed(0)
    config = preset("modern", n_vocab=1000, n_context=32, n_block=4, n_head=4, d_model=128)
    logits = Transformer(config)(torch.randint(1000, (4, 32)))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(1000, (128,)))
    assert abs(loss.item() - torch.tensor(1000.0).log().item()) < 0.1


def test_dropout_is_active_only_in_training():
    network = make("modern", dropout=0.5)
    assert torch.equal(network(some_ids()), network(some_ids()))
    network.train()
    assert not torch.equal(network(some_ids()), network(some_ids()))


def test_tied_embeddings_share_one_tensor():
    network = make("modern")
    assert network.unembedding.weight is network.embedding.weight
    assert make("gated gelu, untied").unembedding.weight is not make("modern").embedding.weight
