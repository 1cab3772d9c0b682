"""Dropping the oldest tokens from the KV cache: exact in the first block, approximate after it."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.decoder import ShiftingDecoder, TransformerDecoder
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer

SIZES = {"n_vocab": 13, "n_context": 16, "n_head": 2, "d_model": 16}
SETTINGS = {
    "qwen3": {"n_kv_head": 1},
    "llama": {"qk_norm": False, "rope_scaling": {"kind": "linear", "factor": 2.0}},
    "local": {"window": 5, "local_blocks": [0], "local_rotary_base": 100.0},
    "partly rotary": {"rotary_dim": 4},
    "yarn": {
        "rope_scaling": {"kind": "yarn", "factor": 4.0, "original_context": 16, "attention_factor": 1.2}
    },
    "no positions": {"position": "none"},
}


def made(n_block: int = 1, **more) -> Transformer:
    torch.manual_seed(0)
    network = Transformer(preset("modern", **SIZES, n_block=n_block, **more)).eval()
    for parameter in network.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return network


def kept_tokens(n: int) -> list[int]:
    """Compute by hand which of n tokens a context of 16 keeps: the first four and the newest six to twelve."""
    kept: list[int] = []
    for i in range(n):
        if len(kept) == 16:
            kept = kept[:4] + kept[10:]
        kept.append(i)
    return kept


@pytest.mark.parametrize("name", SETTINGS)
def test_one_block_matches_recomputing_the_remaining_tokens(name):
    """In one block, a token's keys and values do not depend on other tokens; only its position must be correct."""
    network = made(**SETTINGS[name])
    ids = torch.randint(13, (2, 60), generator=torch.Generator().manual_seed(1))
    decoder = ShiftingDecoder(network, 2)
    for i in range(60):
        logits = decoder.decode_one(ids[:, i : i + 1])
        with torch.no_grad():
            recomputed = network(ids[:, kept_tokens(i + 1)])[:, -1]
        assert torch.allclose(logits, recomputed, atol=1e-4), i


def test_several_blocks_are_only_approximate():
    """The remaining tokens have attended to the dropped ones."""
    network = made(3)
    ids = torch.randint(13, (1, 40), generator=torch.Generator().manual_seed(1))
    decoder, plain = ShiftingDecoder(network), TransformerDecoder(network)
    for i in range(40):
        logits, exact = decoder.decode_one(ids[:, i : i + 1]), plain.decode_one(ids[:, i : i + 1])
        if i < 16:
            assert torch.allclose(logits, exact, atol=1e-5)
        assert logits.isfinite().all()
    assert not torch.allclose(logits, exact, atol=1e-3)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # on CPUs without bfloat16
def test_half_precision_keys_are_rotated_in_single_precision():
    network = made().bfloat16()
    ids = torch.randint(13, (1, 60), generator=torch.Generator().manual_seed(1))
    decoder = ShiftingDecoder(network)
    for i in range(60):
        logits = decoder.decode_one(ids[:, i : i + 1])
        with torch.no_grad():
            recomputed = network(ids[:, kept_tokens(i + 1)])[:, -1]
        assert torch.allclose(logits, recomputed, atol=0.1), i


def test_prompts_longer_than_the_context_keep_their_end():
    network = made()
    ids = torch.randint(13, (1, 50), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = network(ids[:, -16:])[:, -1]
    assert torch.allclose(ShiftingDecoder(network).prefill(ids), expected, atol=1e-5)
    decoder = ShiftingDecoder(network)
    decoder.prefill(ids[:, :3])
    assert torch.allclose(decoder.prefill(ids[:, 3:]), expected, atol=1e-5)


def test_prefilling_several_tokens_drops_the_oldest_ones():
    network = made()
    ids = torch.randint(13, (1, 26), generator=torch.Generator().manual_seed(1))
    decoder = ShiftingDecoder(network)
    decoder.prefill(ids[:, :16])
    with torch.no_grad():
        expected = network(torch.cat((ids[:, :4], ids[:, 14:]), dim=1))[:, -1]
    assert torch.allclose(decoder.prefill(ids[:, 16:]), expected, atol=1e-4)


@pytest.mark.parametrize("n_context", [1, 2, 3, 5])
def test_smallest_contexts_work(n_context):
    torch.manual_seed(0)
    network = Transformer(preset("modern", **{**SIZES, "n_context": n_context}, n_block=2)).eval()
    decoder = ShiftingDecoder(network)
    for i in range(12):
        assert decoder.decode_one(torch.tensor([[i]])).isfinite().all()
        assert decoder.cache.length <= n_context


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_absolute_positions_are_rejected(position):
    network = Transformer(preset("lecture", **SIZES, n_block=1, position=position))
    with pytest.raises(UserError, match=f"requires rotary positions; this model has {position}"):
        ShiftingDecoder(network)
