"""Small networks of every kind, with noise added to their initial weights, many of which are near zero."""

import pytest
import torch

from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from tests.shapes import GEMMA2

LOCAL = {"window": 20, "local_blocks": (0,)}
FAMILIES = PRESETS | {
    "shared keys": {**PRESETS["modern"], "n_kv_head": 2},
    "one key-value head, wide": {**PRESETS["modern"], "n_kv_head": 1, "d_head": 12},
    "sinusoidal": {**PRESETS["gpt2"], "position": "sinusoidal"},
    "no position": {**PRESETS["gpt2"], "position": "none"},
    "partly rotary, parallel": {
        **PRESETS["lecture"],
        "position": "rotary",
        "rotary_dim": 4,
        "parallel": True,
        "tied": False,
    },
    "local, like Mistral": {**PRESETS["modern"], "window": 20, "local_blocks": (0, 1)},
    "local and global, like Gemma": {
        **PRESETS["modern"],
        **LOCAL,
        "local_rotary_base": 100.0,
        "post_norm": True,
        "embedding_scale": 5.6,
        "feedforward": "geglu",
        "d_k": 16,
    },
    "capped, like Gemma 2": {**GEMMA2, **LOCAL, "n_kv_head": 2},
    "post-norm alone, like OLMo 2": {
        **PRESETS["modern"],
        "pre_norm": False,
        "post_norm": True,
        "qk_norm_joint": True,
    },
    "partly without positions, like SmolLM3": {
        **PRESETS["modern"],
        "qk_norm": False,
        "unrotated_blocks": (1,),
    },
    "stretched by YaRN": {
        **PRESETS["modern"],
        "rope_scaling": {
            "kind": "yarn",
            "factor": 8.0,
            "high_freq_factor": 32.0,
            "original_context": 32,
            "attention_factor": 1.2,
        },
    },
    "stretched": {
        **PRESETS["modern"],
        "rope_scaling": {"kind": "llama3", "factor": 8.0, "original_context": 32},
    },
}


def make_network(family: str = "modern", **sizes: object) -> Transformer:
    torch.manual_seed(0)
    usual = {"n_vocab": 257, "n_context": 160, "n_block": 2, "n_head": 4, "d_model": 32}
    network = Transformer(Config.from_json({**usual, **FAMILIES[family], **sizes})).eval()
    for parameter in network.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return network


@pytest.fixture(scope="session")
def make():
    return make_network


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer.train("byte", [])
