"""GPT-2, which can express the presets `gpt2` and, with ReLU, `lecture`. Its matrices are stored [in, out]."""

from __future__ import annotations

from typing import Any

from clearhead.formats.families.family import (
    ACTIVATIONS,
    Family,
    Named,
    Tensors,
    concatenate,
    is_pre_norm,
    need,
    read_activation,
    refuse_unless,
)
from clearhead.model.config import Config

ENDS = {
    "embedding.weight": "transformer.wte.weight",
    "position.weight": "transformer.wpe.weight",
    "final_norm.gain": "transformer.ln_f.weight",
    "final_norm.shift": "transformer.ln_f.bias",
    "unembedding.weight": "lm_head.weight",
}
NORMS = {
    "norm.gain": "ln_1.weight",
    "norm.shift": "ln_1.bias",
    "norm2.gain": "ln_2.weight",
    "norm2.shift": "ln_2.bias",
}
LINEARS = {
    "attention.output": "attn.c_proj",
    "feedforward.first": "mlp.c_fc",
    "feedforward.second": "mlp.c_proj",
}


def holds(config: Config) -> bool:
    return (
        config.norm == "layer"
        and config.position == "learned"
        and config.feedforward in ACTIVATIONS
        and config.causal
        and not config.qk_norm
        and config.qkv_bias
        and config.output_bias
        and config.feedforward_bias
        and config.n_kv_head == config.n_head
        and config.d_head * config.n_head == config.d_model
        and config.d_k == config.d_head
        and config.embedding_scale == 1
        and not config.capped
        and not config.local_blocks
        and not config.parallel
        and is_pre_norm(config)
    )


def write_config(config: Config) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.n_vocab,
        "n_positions": config.n_context,
        "n_ctx": config.n_context,
        "n_embd": config.d_model,
        "n_layer": config.n_block,
        "n_head": config.n_head,
        "n_inner": config.d_hidden,
        "activation_function": ACTIVATIONS[config.feedforward],
        "layer_norm_epsilon": config.norm_epsilon,
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": config.tied,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "scale_attn_weights", True)
    refuse_unless(settings, "scale_attn_by_inverse_layer_idx", False)
    refuse_unless(settings, "add_cross_attention", False)
    return Config.from_json(
        {
            "n_vocab": need(settings, "vocab_size"),
            "n_context": need(settings, "n_positions"),
            "n_block": need(settings, "n_layer"),
            "n_head": need(settings, "n_head"),
            "d_model": need(settings, "n_embd"),
            "d_hidden": settings.get("n_inner") or 0,
            "norm_epsilon": settings.get("layer_norm_epsilon", 1e-5),
            "feedforward": read_activation(settings, "activation_function", "gelu_new"),
            "tied": settings.get("tie_word_embeddings", True),
        }
    )


def write_tensors(tensors: Tensors, config: Config) -> Named:
    theirs = {ENDS[name]: tensor for name, tensor in tensors.items() if name in ENDS}
    for i in range(config.n_block):
        ours, their = f"blocks.{i}.", f"transformer.h.{i}."
        for name, foreign in NORMS.items():
            theirs[their + foreign] = tensors[ours + name]
        for name, foreign in LINEARS.items():
            theirs[f"{their}{foreign}.weight"] = tensors[f"{ours}{name}.weight"].T
            theirs[f"{their}{foreign}.bias"] = tensors[f"{ours}{name}.bias"]
        for part, turn in (("weight", True), ("bias", False)):
            all_three = concatenate(
                [tensors[f"{ours}attention.{role}.{part}"] for role in ("query", "key", "value")]
            )
            theirs[f"{their}attn.c_attn.{part}"] = all_three.T if turn else all_three
    return theirs


def read_tensors(tensors: Tensors, config: Config) -> Named:
    ours = {name: tensors[foreign] for name, foreign in ENDS.items() if foreign in tensors}
    for i in range(config.n_block):
        our, theirs = f"blocks.{i}.", f"transformer.h.{i}."
        for name, foreign in NORMS.items():
            ours[our + name] = tensors[theirs + foreign]
        for name, foreign in LINEARS.items():
            ours[f"{our}{name}.weight"] = tensors[f"{theirs}{foreign}.weight"].T
            ours[f"{our}{name}.bias"] = tensors[f"{theirs}{foreign}.bias"]
        for part, turn in (("weight", True), ("bias", False)):
            all_three = tensors[f"{theirs}attn.c_attn.{part}"]
            thirds = (all_three.T if turn else all_three).chunk(3)
            for role, third in zip(("query", "key", "value"), thirds, strict=True):
                ours[f"{our}attention.{role}.{part}"] = third
    return ours


FAMILY = Family("gpt2", "transformer.", holds, write_config, read_config, write_tensors, read_tensors)
