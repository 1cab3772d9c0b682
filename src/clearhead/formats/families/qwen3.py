"""Qwen3, which can express the preset `modern`: a Llama with norms on queries and keys."""

from __future__ import annotations

from typing import Any

from clearhead.formats.families.family import Family, refuse_unless
from clearhead.formats.families.llama import is_plain, read_shared, read_tensors, write_shared, write_tensors
from clearhead.formats.families.qwen2 import read_windows, write_windows
from clearhead.model.config import Config


def holds(config: Config) -> bool:
    biased = config.qkv_bias == config.output_bias and not config.feedforward_bias
    return is_plain(config) and config.qk_norm and not config.qk_norm_joint and biased


def write_config(config: Config) -> dict[str, Any]:
    shared = write_shared(config, "Qwen3ForCausalLM")
    return {**shared, **write_windows(config), "attention_bias": config.qkv_bias}


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    bias = settings.get("attention_bias", False)
    own = {"qk_norm": True, "qkv_bias": bias, "output_bias": bias, "d_head": settings.get("head_dim", 128)}
    return Config.from_json({**read_shared(settings), **read_windows(settings), **own})


FAMILY = Family("qwen3", "model.", holds, write_config, read_config, write_tensors, read_tensors)
