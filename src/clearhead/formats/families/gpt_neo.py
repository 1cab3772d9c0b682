"""GPT-Neo (also the TinyStories models): every other block is local, and scores are not divided by √d_k."""

from __future__ import annotations

from typing import Any

from clearhead.errors import UserError
from clearhead.formats.families.family import (
    ACTIVATIONS,
    Family,
    is_pre_norm,
    need,
    read_activation,
    refuse_unless,
    renaming,
)
from clearhead.formats.families.gpt2 import ENDS, NORMS
from clearhead.model.config import Config

PARTS = {
    "attention.query": "attn.attention.q_proj",
    "attention.key": "attn.attention.k_proj",
    "attention.value": "attn.attention.v_proj",
    "attention.output": "attn.attention.out_proj",
    "feedforward.first": "mlp.c_fc",
    "feedforward.second": "mlp.c_proj",
}
BLOCK = {
    f"{ours}.{kind}": f"transformer.h.{{i}}.{theirs}.{kind}"
    for ours, theirs in PARTS.items()
    for kind in ("weight", "bias")
} | {ours: f"transformer.h.{{i}}.{theirs}" for ours, theirs in NORMS.items()}
UNDIVIDED = 1  # the d_k whose square root divides the scores


def holds(config: Config) -> bool:
    return (
        config.norm == "layer"
        and config.position == "learned"
        and config.feedforward in ACTIVATIONS
        and config.causal
        and not config.qk_norm
        and not config.qkv_bias
        and config.output_bias
        and config.feedforward_bias
        and config.n_kv_head == config.n_head
        and config.d_head * config.n_head == config.d_model
        and config.d_k == UNDIVIDED
        and config.embedding_scale == 1
        and not config.capped
        and not config.parallel
        and is_pre_norm(config)
    )


def write_config(config: Config) -> dict[str, Any]:
    kinds = ["local" if i in config.local_blocks else "global" for i in range(config.n_block)]
    return {
        "architectures": ["GPTNeoForCausalLM"],
        "vocab_size": config.n_vocab,
        "max_position_embeddings": config.n_context,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_hidden,
        "num_layers": config.n_block,
        "num_heads": config.n_head,
        "attention_types": [[[kind], 1] for kind in kinds],
        "attention_layers": kinds,
        "window_size": config.window or config.n_context,
        "activation_function": ACTIVATIONS[config.feedforward],
        "layer_norm_epsilon": config.norm_epsilon,
        "embed_dropout": config.dropout,
        "resid_dropout": config.dropout,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "add_cross_attention", False)
    n_block, kinds = need(settings, "num_layers"), _read_kinds(settings)
    if len(kinds) != n_block:
        raise UserError(f"config.json gives the kinds of {len(kinds)} blocks, but num_layers is {n_block!r}")
    local = [i for i, kind in enumerate(kinds) if kind == "local"]
    return Config.from_json(
        {
            "n_vocab": need(settings, "vocab_size"),
            "n_context": need(settings, "max_position_embeddings"),
            "n_block": n_block,
            "n_head": need(settings, "num_heads"),
            "d_model": need(settings, "hidden_size"),
            "d_hidden": settings.get("intermediate_size") or 0,
            "d_k": UNDIVIDED,
            "norm_epsilon": settings.get("layer_norm_epsilon", 1e-5),
            "feedforward": read_activation(settings, "activation_function", "gelu_new"),
            "qkv_bias": False,
            "window": settings.get("window_size", 256) if local else 0,
            "local_blocks": local,
            "tied": settings.get("tie_word_embeddings", True),
        }
    )


def _read_kinds(settings: dict[str, Any]) -> list[str]:
    """The kind of each block, from `attention_layers` or from `attention_types`, such as [[["global", "local"], 6]]."""
    kinds = settings.get("attention_layers")
    if kinds is None:
        groups = need(settings, "attention_types")
        try:
            short = all(type(n) is int and 0 <= n <= 1000 and len(part) <= 1000 for part, n in groups)
            kinds = (
                [kind for part, n in groups for kind in part * n] if short and len(groups) <= 1000 else None
            )
        except (TypeError, ValueError):
            kinds = None
    if not isinstance(kinds, list) or not all(kind in ("global", "local") for kind in kinds):
        raise UserError("config.json has attention_types other than lists of global and local")
    return kinds


write_tensors, read_tensors = renaming(ENDS, BLOCK)

FAMILY = Family("gpt_neo", "transformer.", holds, write_config, read_config, write_tensors, read_tensors)
