"""Gemma 3 (text): scaled embedding, pre- and post-norm, GeGLU, mostly local blocks; gains are stored as w =
gain - 1.
"""

from __future__ import annotations

import math
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.families import llama
from clearhead.formats.families.family import (
    Family,
    Named,
    Tensors,
    need,
    read_local,
    read_rotary,
    refuse_unless,
    renaming,
    write_local,
    write_rotary,
)
from clearhead.model.config import MOST, Config

BLOCK = llama.BLOCK | {
    "attention_norm.gain": "model.layers.{i}.post_attention_layernorm.weight",
    "norm2.gain": "model.layers.{i}.pre_feedforward_layernorm.weight",
    "feedforward_norm.gain": "model.layers.{i}.post_feedforward_layernorm.weight",
}
LOCAL_BASE = 10_000.0
PATTERN = 6  # in older files, every sixth block is global


def holds(config: Config) -> bool:
    return (
        config.norm == "rms"
        and config.position == "rotary"
        and config.rotary_dim == config.d_head
        and not config.unrotated_blocks
        and config.feedforward == "geglu"
        and config.causal
        and config.qk_norm
        and not config.qk_norm_joint
        and config.qkv_bias == config.output_bias
        and not config.feedforward_bias
        and config.embedding_scale == math.sqrt(config.d_model)
        and config.pre_norm
        and config.post_norm
        and not config.parallel
        and not config.capped
    )


def write_config(config: Config) -> dict[str, Any]:
    shared = llama.write_shared(config, "Gemma3ForCausalLM")
    del shared["hidden_act"]
    everywhere = write_rotary(config)
    local = {"rope_type": "default", "rope_theta": config.local_rotary_base or config.rotary_base}
    return {
        **shared,
        **everywhere,
        "rope_parameters": {"full_attention": everywhere["rope_parameters"], "sliding_attention": local},
        "rope_local_base_freq": local["rope_theta"],
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": config.d_k,
        **write_local(config),
        # A file must specify a window even if no block is local.
        "sliding_window": config.window or config.n_context,
        "attention_bias": config.qkv_bias,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_activation", "gelu_pytorch_tanh")
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        refuse_unless(settings, name, None)
    refuse_unless(settings, "use_bidirectional_attention", False)
    bias = settings.get("attention_bias", False)
    pattern = settings.get("sliding_window_pattern", PATTERN)
    if type(pattern) is not int or pattern < 1:
        raise UserError(f"sliding_window_pattern = {pattern!r} in config.json: expected an integer")
    return Config.from_json(
        {
            **llama.read_shared({**settings, "rope_parameters": None, "rope_scaling": None}),
            **read_local(settings, lambda i: (i + 1) % pattern != 0),
            **_read_rotary(settings),
            "d_head": settings.get("head_dim", 256),
            "d_k": settings.get("query_pre_attn_scalar", 256),
            "feedforward": "geglu",
            "qk_norm": True,
            "qkv_bias": bias,
            "output_bias": bias,
            "post_norm": True,
            "embedding_scale": math.sqrt(read_width(settings)),
            "tied": settings.get("tie_word_embeddings", True),
        }
    )


def read_width(settings: dict[str, Any]) -> int:
    """The width; token vectors are multiplied by its square root."""
    width = need(settings, "hidden_size")
    if type(width) is not int or not 1 <= width <= MOST:
        raise UserError(f"hidden_size = {width!r} in config.json: expected an integer")
    return width


def _read_rotary(settings: dict[str, Any]) -> dict[str, Any]:
    """Newer files have RoPE parameters for each kind of block, older ones a second base."""
    rope = settings.get("rope_parameters") or {}
    if not isinstance(rope, dict):
        raise UserError(f"rope_parameters = {rope!r} in config.json: expected an object")
    if "full_attention" not in rope:
        found = read_rotary(settings, 1_000_000.0)
        return {**found, "local_rotary_base": settings.get("rope_local_base_freq") or LOCAL_BASE}
    local = read_rotary({"rope_parameters": rope.get("sliding_attention")}, LOCAL_BASE)
    if local["rope_scaling"] is not None:
        raise UserError("config.json scales the positions of local blocks, which is not supported")
    everywhere = read_rotary({"rope_parameters": rope["full_attention"]}, 1_000_000.0)
    return {**everywhere, "local_rotary_base": local["rotary_base"]}


_write, _read = renaming(llama.ENDS, BLOCK)


def write_tensors(tensors: Tensors, config: Config) -> Named:
    return {name: _less_one(name, tensor) for name, tensor in _write(tensors, config).items()}


def read_tensors(tensors: Tensors, config: Config) -> Named:
    ours = _read(tensors, config)
    return {name: tensor + 1 if name.endswith(".gain") else tensor for name, tensor in ours.items()}


def _less_one(name: str, tensor: Any) -> Any:
    return tensor - 1 if name.endswith("norm.weight") else tensor


FAMILY = Family("gemma3_text", "model.", holds, write_config, read_config, write_tensors, read_tensors)
