"""Words read one by one in eight bits."""

import pytest
import torch

from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import make_decoder
from clearhead.generate.quantized_decoder import QuantizedDecoder, supports
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import quantize

pytest.importorskip("numba", reason="numba, which compiles the steps, is not installed")

SIZES = {"n_block": 2, "n_head": 4, "d_model": 64, "n_context": 24, "n_vocab": 100}
SETTINGS = {
    "lecture": {},
    "gpt2": {},
    "gpt2 with erf": {"feedforward": "gelu"},
    "modern": {},
    "modern, shared": {"n_kv_head": 2, "feedforward": "geglu"},
    "modern, half turned": {"rotary_dim": 8, "qk_norm": False},
}


def make(case):
    torch.manual_seed(1)
    network = Transformer(preset(case.split(",")[0].split(" ")[0], **{**SIZES, **SETTINGS[case]}))
    for parameter in network.parameters():  # gains and biases that tell whether they are used
        torch.nn.init.normal_(parameter, mean=1 if parameter.ndim == 1 else 0, std=0.2)
    return quantize(network.eval())


@pytest.mark.parametrize("case", SETTINGS)
def test_word_by_word_as_by_the_layers(case):
    network = make(case)
    quick, plain = QuantizedDecoder(network), TransformerDecoder(network)
    words = torch.randint(100, (1, 30))
    assert quick.prefill(words[:, :5]).equal(plain.prefill(words[:, :5]))
    apart = []
    for i in range(5, 30):  # further than the context goes
        ours, expected = quick.decode_one(words[:, i : i + 1]), plain.decode_one(words[:, i : i + 1])
        apart.append((ours - expected).norm() / expected.norm())
        # From the same past, it goes on alike.
        quick.cache.data.copy_(plain.cache.data)
    # A number in the middle between two codes may go to either, by its last bit; that is seldom.
    assert max(apart) < 0.02
    assert torch.stack(apart[:19]).median() < 1e-5  # those within the context


def test_one_text_of_a_plain_stack_is_read_so():
    network = make("modern")
    assert isinstance(make_decoder(network, 1, 20), QuantizedDecoder)
    assert type(make_decoder(network, 2, 20)) is TransformerDecoder
    other = Config(**{**SIZES, "parallel": True})
    assert not supports(quantize(Transformer(other).eval()))
    assert not supports(Transformer(preset("gpt2", **SIZES)))
