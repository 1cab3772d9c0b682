"""Mistral: a Llama with optional sliding-window attention in all blocks."""

from __future__ import annotations

from typing import Any

from clearhead.formats.families.family import Family, read_local, refuse_unless
from clearhead.formats.families.llama import is_plain, read_shared, read_tensors, write_shared, write_tensors
from clearhead.model.config import Config


def holds(config: Config) -> bool:
    everywhere = len(config.local_blocks) in (0, config.n_block)
    biased = config.qk_norm or config.qkv_bias or config.output_bias or config.feedforward_bias
    return is_plain(config) and everywhere and not biased


def write_config(config: Config) -> dict[str, Any]:
    return {
        **write_shared(config, "MistralForCausalLM"),
        "sliding_window": config.window if config.local_blocks else None,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    local = read_local({**settings, "layer_types": None}, lambda _: True)
    return Config.from_json({**read_shared(settings), **local})


FAMILY = Family("mistral", "model.", holds, write_config, read_config, write_tensors, read_tensors)
