"""OPT: GPT-2 with ReLU, matrices stored [out, in], and two unused rows before the learned positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.formats.families import gpt2
from clearhead.formats.families.family import (
    ACTIVATIONS,
    Family,
    Named,
    Tensors,
    concatenate,
    need,
    read_activation,
    refuse_unless,
    renaming,
)
from clearhead.model.config import Config

OFFSET = 2  # rows
POSITIONS = "model.decoder.embed_positions.weight"
ENDS = {
    "embedding.weight": "model.decoder.embed_tokens.weight",
    "position.weight": POSITIONS,
    "final_norm.gain": "model.decoder.final_layer_norm.weight",
    "final_norm.shift": "model.decoder.final_layer_norm.bias",
    "unembedding.weight": "lm_head.weight",
}
PARTS = {
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.out_proj",
    "feedforward.first": "fc1",
    "feedforward.second": "fc2",
}
LAYER = "model.decoder.layers.{i}"
BLOCK = {
    f"{ours}.{kind}": f"{LAYER}.{theirs}.{kind}"
    for ours, theirs in PARTS.items()
    for kind in ("weight", "bias")
} | {
    "norm.gain": f"{LAYER}.self_attn_layer_norm.weight",
    "norm.shift": f"{LAYER}.self_attn_layer_norm.bias",
    "norm2.gain": f"{LAYER}.final_layer_norm.weight",
    "norm2.shift": f"{LAYER}.final_layer_norm.bias",
}


def holds(config: Config) -> bool:
    biased = replace(config, qkv_bias=True, output_bias=True, feedforward_bias=True)
    return (
        gpt2.holds(biased)
        and config.norm_epsilon == 1e-5
        and config.qkv_bias == config.output_bias == config.feedforward_bias
    )


def write_config(config: Config) -> dict[str, Any]:
    return {
        "architectures": ["OPTForCausalLM"],
        "vocab_size": config.n_vocab,
        "max_position_embeddings": config.n_context,
        "hidden_size": config.d_model,
        "word_embed_proj_dim": config.d_model,
        "ffn_dim": config.d_hidden,
        "num_hidden_layers": config.n_block,
        "num_attention_heads": config.n_head,
        "activation_function": ACTIVATIONS[config.feedforward],
        "do_layer_norm_before": True,
        "enable_bias": config.qkv_bias,
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "do_layer_norm_before", True)
    refuse_unless(settings, "_remove_final_layer_norm", False)
    refuse_unless(settings, "layer_norm_elementwise_affine", True)
    width = need(settings, "hidden_size")
    refuse_unless(settings, "word_embed_proj_dim", width, None)
    bias = settings.get("enable_bias", True)
    return Config.from_json(
        {
            "n_vocab": need(settings, "vocab_size"),
            "n_context": need(settings, "max_position_embeddings"),
            "n_block": need(settings, "num_hidden_layers"),
            "n_head": need(settings, "num_attention_heads"),
            "d_model": width,
            "d_hidden": need(settings, "ffn_dim"),
            "feedforward": read_activation(settings, "activation_function", "relu"),
            "qkv_bias": bias,
            "output_bias": bias,
            "feedforward_bias": bias,
            "tied": settings.get("tie_word_embeddings", True),
        }
    )


_write, _read = renaming(ENDS, BLOCK)


def write_tensors(tensors: Tensors, config: Config) -> Named:
    theirs = _write(tensors, config)
    positions = theirs[POSITIONS]
    theirs[POSITIONS] = concatenate([positions.new_zeros(OFFSET, config.d_model), positions])
    return theirs


def read_tensors(tensors: Tensors, config: Config) -> Named:
    ours = _read(tensors, config)
    ours["position.weight"] = ours["position.weight"][OFFSET:]
    return ours


FAMILY = Family("opt", "model.", holds, write_config, read_config, write_tensors, read_tensors)
