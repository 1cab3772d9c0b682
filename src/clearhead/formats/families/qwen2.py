"""Qwen2 (and 2.5): a Llama with biases on queries, keys and values, whose later blocks can be local."""

from __future__ import annotations

from typing import Any

from clearhead.errors import UserError
from clearhead.formats.families.family import Family, read_local, refuse_unless, write_local
from clearhead.formats.families.llama import is_plain, read_shared, read_tensors, write_shared, write_tensors
from clearhead.model.config import Config


def holds(config: Config) -> bool:
    biased = config.qkv_bias and not config.output_bias and not config.feedforward_bias
    return (
        is_plain(config) and biased and not config.qk_norm and config.d_head * config.n_head == config.d_model
    )


def write_config(config: Config) -> dict[str, Any]:
    return {**write_shared(config, "Qwen2ForCausalLM"), **write_windows(config)}


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    return Config.from_json({**read_shared(settings), **read_windows(settings), "qkv_bias": True})


def write_windows(config: Config) -> dict[str, Any]:
    return {"use_sliding_window": bool(config.local_blocks), **write_local(config)}


def read_windows(settings: dict[str, Any]) -> dict[str, Any]:
    if not settings.get("use_sliding_window", False):
        return {}
    first = settings.get("max_window_layers", 28)
    if type(first) is not int:
        raise UserError(f"max_window_layers = {first!r} in config.json: expected an integer")
    return read_local(settings, lambda i: i >= first)


FAMILY = Family("qwen2", "model.", holds, write_config, read_config, write_tensors, read_tensors)
