"""Qwen3, which holds the preset `modern`."""

from __future__ import annotations

from typing import Any

from clearhead.errors import UserError
from clearhead.formats.family import Family, need, refuse_unless, renaming
from clearhead.model.config import Config

ENDS = {
    "embedding.weight": "model.embed_tokens.weight",
    "final_norm.gain": "model.norm.weight",
    "unembedding.weight": "lm_head.weight",
}
BLOCK = {
    f"blocks.{{i}}.{ours}": f"model.layers.{{i}}.{theirs}"
    for ours, theirs in {
        "norm.gain": "input_layernorm.weight",
        "attention.query.weight": "self_attn.q_proj.weight",
        "attention.key.weight": "self_attn.k_proj.weight",
        "attention.value.weight": "self_attn.v_proj.weight",
        "attention.output.weight": "self_attn.o_proj.weight",
        "attention.query.bias": "self_attn.q_proj.bias",
        "attention.key.bias": "self_attn.k_proj.bias",
        "attention.value.bias": "self_attn.v_proj.bias",
        "attention.output.bias": "self_attn.o_proj.bias",
        "attention.query_norm.gain": "self_attn.q_norm.weight",
        "attention.key_norm.gain": "self_attn.k_norm.weight",
        "norm2.gain": "post_attention_layernorm.weight",
        "feedforward.gate.weight": "mlp.gate_proj.weight",
        "feedforward.first.weight": "mlp.up_proj.weight",
        "feedforward.second.weight": "mlp.down_proj.weight",
    }.items()
}


def holds(config: Config) -> bool:
    return (
        config.norm == "rms"
        and config.position == "rotary"
        and config.feedforward == "swiglu"
        and config.causal
        and config.qk_norm
        and config.qkv_bias == config.output_bias
        and not config.feedforward_bias
    )


def write_config(config: Config) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": config.n_vocab,
        "max_position_embeddings": config.n_context,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_hidden,
        "num_hidden_layers": config.n_block,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.d_head,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_epsilon,
        # Older readers know the first, newer ones the second.
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "attention_bias": config.qkv_bias,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "tie_word_embeddings": config.tied,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    refuse_unless(settings, "use_sliding_window", False)
    refuse_unless(settings, "rope_scaling", None)
    rope = settings.get("rope_parameters") or {}
    if not isinstance(rope, dict):
        raise UserError(f"rope_parameters = {rope!r} in config.json: expected an object")
    refuse_unless(rope, "rope_type", "default")
    bias = settings.get("attention_bias", False)
    return Config.from_json(
        {
            "n_vocab": need(settings, "vocab_size"),
            "n_context": need(settings, "max_position_embeddings"),
            "n_block": need(settings, "num_hidden_layers"),
            "n_head": need(settings, "num_attention_heads"),
            "n_kv_head": need(settings, "num_key_value_heads"),
            "d_model": need(settings, "hidden_size"),
            "d_head": need(settings, "head_dim"),
            "d_hidden": need(settings, "intermediate_size"),
            "norm": "rms",
            "norm_epsilon": settings.get("rms_norm_eps", 1e-6),
            "position": "rotary",
            "rotary_base": rope.get("rope_theta") or need(settings, "rope_theta"),
            "feedforward": "swiglu",
            "qk_norm": True,
            "qkv_bias": bias,
            "output_bias": bias,
            "feedforward_bias": False,
            "tied": settings.get("tie_word_embeddings", False),
        }
    )


write_tensors, read_tensors = renaming(ENDS, BLOCK)

FAMILY = Family("qwen3", holds, write_config, read_config, write_tensors, read_tensors)
