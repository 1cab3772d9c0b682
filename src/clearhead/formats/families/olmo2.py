"""OLMo 2: a Llama that normalizes the output of each half of a block instead of its input, and has a QK-norm over all
heads together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.formats.families.family import Family, refuse_unless, renaming
from clearhead.formats.families.llama import BLOCK, ENDS, is_plain, read_shared, write_shared
from clearhead.model.config import Config

OWN = {
    "attention_norm.gain": "model.layers.{i}.post_attention_layernorm.weight",
    "feedforward_norm.gain": "model.layers.{i}.post_feedforward_layernorm.weight",
}


def holds(config: Config) -> bool:
    return (
        is_plain(replace(config, pre_norm=True, post_norm=False))
        and config.post_norm
        and not config.pre_norm
        and config.qk_norm_joint
        and not config.local_blocks
        and config.d_head * config.n_head == config.d_model
        and config.qkv_bias == config.output_bias
        and not config.feedforward_bias
    )


def write_config(config: Config) -> dict[str, Any]:
    return {**write_shared(config, "Olmo2ForCausalLM"), "attention_bias": config.qkv_bias}


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    bias = settings.get("attention_bias", False)
    return Config.from_json(
        {
            **read_shared({"rms_norm_eps": 1e-5, **settings}),
            "pre_norm": False,
            "post_norm": True,
            "qk_norm": True,
            "qk_norm_joint": True,
            "qkv_bias": bias,
            "output_bias": bias,
        }
    )


write_tensors, read_tensors = renaming(ENDS, {**BLOCK, **OWN})

FAMILY = Family("olmo2", "model.", holds, write_config, read_config, write_tensors, read_tensors)
