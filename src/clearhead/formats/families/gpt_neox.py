"""GPT-NeoX (Pythia): parallel blocks, partial RoPE. It stores q, k and v of each head together."""

from __future__ import annotations

from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.formats.families.family import (
    ACTIVATIONS,
    Family,
    Named,
    Tensors,
    is_pre_norm,
    need,
    read_activation,
    read_rotary,
    write_rotary,
)
from clearhead.model.config import MOST, Config

ENDS = {
    "embedding.weight": "gpt_neox.embed_in.weight",
    "final_norm.gain": "gpt_neox.final_layer_norm.weight",
    "final_norm.shift": "gpt_neox.final_layer_norm.bias",
    "unembedding.weight": "embed_out.weight",
}
PARTS = {
    "norm.gain": "input_layernorm.weight",
    "norm.shift": "input_layernorm.bias",
    "norm2.gain": "post_attention_layernorm.weight",
    "norm2.shift": "post_attention_layernorm.bias",
    "attention.output.weight": "attention.dense.weight",
    "attention.output.bias": "attention.dense.bias",
    "feedforward.first.weight": "mlp.dense_h_to_4h.weight",
    "feedforward.first.bias": "mlp.dense_h_to_4h.bias",
    "feedforward.second.weight": "mlp.dense_4h_to_h.weight",
    "feedforward.second.bias": "mlp.dense_4h_to_h.bias",
}
ROLES = ("query", "key", "value")


def holds(config: Config) -> bool:
    return (
        config.norm == "layer"
        and config.position == "rotary"
        and config.feedforward in ACTIVATIONS
        and config.causal
        and not config.qk_norm
        and config.qkv_bias == config.output_bias
        and config.feedforward_bias
        and config.n_kv_head == config.n_head
        and config.d_head * config.n_head == config.d_model
        and config.d_k == config.d_head
        and config.embedding_scale == 1
        and not config.capped
        and not config.local_blocks
        and not config.unrotated_blocks
        and is_pre_norm(config)
    )


def write_config(config: Config) -> dict[str, Any]:
    rope = write_rotary(config)
    share = config.rotary_dim / config.d_head
    rope["rope_parameters"]["partial_rotary_factor"] = share
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "vocab_size": config.n_vocab,
        "max_position_embeddings": config.n_context,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_hidden,
        "num_hidden_layers": config.n_block,
        "num_attention_heads": config.n_head,
        "hidden_act": ACTIVATIONS[config.feedforward],
        "layer_norm_eps": config.norm_epsilon,
        "use_parallel_residual": config.parallel,
        "attention_bias": config.qkv_bias,
        "attention_dropout": 0.0,
        "hidden_dropout": config.dropout,
        **rope,
        "rotary_pct": share,
        "rotary_emb_base": config.rotary_base,
        "tie_word_embeddings": config.tied,
    }


def read_config(settings: dict[str, Any]) -> Config:
    rotary = read_rotary(settings, settings.get("rotary_emb_base") or 10_000.0)
    share = settings.get("rotary_pct", 0.25)
    share = (settings.get("rope_parameters") or {}).get("partial_rotary_factor", share)
    width, heads = need(settings, "hidden_size"), need(settings, "num_attention_heads")
    whole = all(type(number) is int and 1 <= number <= MOST for number in (width, heads))
    if not whole or type(share) not in (int, float) or not 0 <= share <= 1:
        raise UserError(
            f"rotary_pct = {share!r}, hidden_size = {width!r} and num_attention_heads = {heads!r} "
            "in config.json: expected a fraction from 0 to 1, and integers"
        )
    bias = settings.get("attention_bias", True)
    return Config.from_json(
        {
            "n_vocab": need(settings, "vocab_size"),
            "n_context": need(settings, "max_position_embeddings"),
            "n_block": need(settings, "num_hidden_layers"),
            "n_head": heads,
            "d_model": width,
            "d_hidden": need(settings, "intermediate_size"),
            "norm_epsilon": settings.get("layer_norm_eps", 1e-5),
            **rotary,
            "rotary_dim": int(width // heads * share),
            "feedforward": read_activation(settings, "hidden_act", "gelu"),
            "parallel": settings.get("use_parallel_residual", True),
            "qkv_bias": bias,
            "output_bias": bias,
            "tied": settings.get("tie_word_embeddings", False),
        }
    )


def write_tensors(tensors: Tensors, config: Config) -> Named:
    theirs = {name: tensors[ours] for ours, name in _names(config).items() if ours in tensors}
    for i in range(config.n_block):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            three = [tensors[f"blocks.{i}.attention.{role}.{kind}"] for role in ROLES]
            rest = three[0].shape[1:]
            by_head = torch.stack([part.view(config.n_head, config.d_head, *rest) for part in three], dim=1)
            theirs[_together(i, kind)] = by_head.flatten(0, 2)
    return theirs


def read_tensors(tensors: Tensors, config: Config) -> Named:
    ours = {name: tensors[theirs] for name, theirs in _names(config).items() if theirs in tensors}
    for i in range(config.n_block):
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            together = tensors[_together(i, kind)]
            by_head = together.view(config.n_head, 3, config.d_head, *together.shape[1:])
            for number, role in enumerate(ROLES):
                ours[f"blocks.{i}.attention.{role}.{kind}"] = by_head[:, number].flatten(0, 1)
    return ours


def _names(config: Config) -> dict[str, str]:
    """Map our names to theirs, except for q, k and v."""
    inside = {
        f"blocks.{i}.{ours}": f"gpt_neox.layers.{i}.{theirs}"
        for i in range(config.n_block)
        for ours, theirs in PARTS.items()
    }
    return ENDS | inside


def _together(i: int, kind: str) -> str:
    return f"gpt_neox.layers.{i}.attention.query_key_value.{kind}"


FAMILY = Family("gpt_neox", "gpt_neox.", holds, write_config, read_config, write_tensors, read_tensors)
