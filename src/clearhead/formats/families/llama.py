"""Llama (SmolLM2, TinyLlama, Llama 3), and what Llama and its descendants share."""

from __future__ import annotations

from typing import Any

from clearhead.formats.families.family import (
    Family,
    is_pre_norm,
    need,
    read_rotary,
    refuse_unless,
    renaming,
    write_rotary,
)
from clearhead.model.config import Config

ENDS = {
    "embedding.weight": "model.embed_tokens.weight",
    "final_norm.gain": "model.norm.weight",
    "unembedding.weight": "lm_head.weight",
}
PARTS = {
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "feedforward.gate": "mlp.gate_proj",
    "feedforward.first": "mlp.up_proj",
    "feedforward.second": "mlp.down_proj",
}
BLOCK = {
    f"{ours}.{kind}": f"model.layers.{{i}}.{theirs}.{kind}"
    for ours, theirs in PARTS.items()
    for kind in ("weight", "bias")
} | {
    "norm.gain": "model.layers.{i}.input_layernorm.weight",
    "norm2.gain": "model.layers.{i}.post_attention_layernorm.weight",
    "attention.query_norm.gain": "model.layers.{i}.self_attn.q_norm.weight",
    "attention.key_norm.gain": "model.layers.{i}.self_attn.k_norm.weight",
}


def is_plain(config: Config) -> bool:
    """Whether a config has what Llama and its descendants have in common."""
    return (
        config.norm == "rms"
        and config.position == "rotary"
        and config.rotary_dim == config.d_head
        and config.feedforward == "swiglu"
        and config.causal
        and config.d_k == config.d_head
        and config.embedding_scale == 1
        and not config.capped
        and config.local_rotary_base == 0
        and not config.unrotated_blocks
        and not config.parallel
        and is_pre_norm(config)
    )


def holds(config: Config) -> bool:
    return (
        is_plain(config)
        and not config.qk_norm
        and not config.local_blocks
        and config.qkv_bias == config.output_bias
    )


def write_shared(config: Config, architecture: str) -> dict[str, Any]:
    return {
        "architectures": [architecture],
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
        **write_rotary(config),
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied,
    }


def read_shared(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "n_vocab": need(settings, "vocab_size"),
        "n_context": need(settings, "max_position_embeddings"),
        "n_block": need(settings, "num_hidden_layers"),
        "n_head": need(settings, "num_attention_heads"),
        "n_kv_head": settings.get("num_key_value_heads") or 0,
        "d_model": need(settings, "hidden_size"),
        "d_head": settings.get("head_dim") or 0,
        "d_hidden": need(settings, "intermediate_size"),
        "norm": "rms",
        "norm_epsilon": settings.get("rms_norm_eps", 1e-6),
        "feedforward": "swiglu",
        "qkv_bias": False,
        "output_bias": False,
        "feedforward_bias": False,
        "tied": settings.get("tie_word_embeddings", False),
        **read_rotary(settings),
    }


def write_config(config: Config) -> dict[str, Any]:
    biases = {"attention_bias": config.qkv_bias, "mlp_bias": config.feedforward_bias}
    return {**write_shared(config, "LlamaForCausalLM"), **biases}


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    bias = settings.get("attention_bias", False)
    biases = {
        "qkv_bias": bias,
        "output_bias": bias,
        "feedforward_bias": settings.get("mlp_bias", False),
    }
    return Config.from_json({**read_shared(settings), **biases})


write_tensors, read_tensors = renaming(ENDS, BLOCK)

FAMILY = Family("llama", "model.", holds, write_config, read_config, write_tensors, read_tensors)
