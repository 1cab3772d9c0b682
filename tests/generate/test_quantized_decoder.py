"""Decoding token by token with 8-bit weights."""

import pytest
import torch

from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import make_decoder
from clearhead.generate.quantized_decoder import QuantizedDecoder, supports
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import quantize

pytest.importorskip("numba", reason="numba is not installed: pip install '.[numba]'")

SIZES = {"n_block": 2, "n_head": 4, "d_model": 64, "n_context": 24, "n_vocab": 100}
SETTINGS = {
    "lecture": {},
    "gpt2": {},
    "gpt2 with erf": {"feedforward": "gelu"},
    "modern": {},
    "modern, shared": {"n_kv_head": 2, "feedforward": "geglu"},
    "modern, half rotary": {"rotary_dim": 8, "qk_norm": False},
}


def make(case):
    torch.manual_seed(1)
    network = Transformer(preset(case.split(",")[0].split(" ")[0], **{**SIZES, **SETTINGS[case]}))
    for parameter in network.parameters():  # so that ignoring a gain or bias changes the result
        torch.nn.init.normal_(parameter, mean=1 if parameter.ndim == 1 else 0, std=0.2)
    return quantize(network.eval())


@pytest.mark.slow  # compiling takes up to a minute
@pytest.mark.parametrize("case", SETTINGS)
def test_quantized_decoder_matches_the_transformer_decoder(case):
    network = make(case)
    quantized, plain = QuantizedDecoder(network), TransformerDecoder(network)
    ids = torch.randint(100, (1, 30))
    assert quantized.prefill(ids[:, :5]).equal(plain.prefill(ids[:, :5]))
    apart = []
    for i in range(5, 30):  # beyond the context length
        ours, expected = quantized.decode_one(ids[:, i : i + 1]), plain.decode_one(ids[:, i : i + 1])
        apart.append((ours - expected).norm() / expected.norm())
        # Copy the cache so that both decoders continue from the same state.
        quantized.cache.data.copy_(plain.cache.data)
    # A value halfway between two codes may round either way because of its last bit; this is rare.
    assert max(apart) < 0.02
    assert torch.stack(apart[:19]).median() < 1e-5  # steps within the context


def test_quantized_decoder_is_used_only_where_supported():
    network = make("modern")
    assert isinstance(make_decoder(network, 1, 20), QuantizedDecoder)
    assert type(make_decoder(network, 2, 20)) is TransformerDecoder
    other = Config(**{**SIZES, "parallel": True})
    assert not supports(quantize(Transformer(other).eval()))
    for capped in ({"score_cap": 1.0}, {"logit_cap": 1.0}):
        assert not supports(quantize(Transformer(Config(**SIZES, **capped)).eval()))
    assert not supports(Transformer(preset("gpt2", **SIZES)))
