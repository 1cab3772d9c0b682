"""Phi-3 and Phi-4: a Mistral that may rotate only some features; q, k and v are stored as one matrix, and so are the
gate and W_1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.formats.families.family import Family, Named, Tensors, concatenate, read_local, refuse_unless
from clearhead.formats.families.llama import ENDS, is_plain, read_shared, write_shared
from clearhead.model.config import MOST, Config

BLOCK = {
    "norm.gain": "input_layernorm.weight",
    "norm2.gain": "post_attention_layernorm.weight",
    "attention.output.weight": "self_attn.o_proj.weight",
    "feedforward.second.weight": "mlp.down_proj.weight",
}
QKV, GATE_UP = "self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight"
ROLES, HALVES = ("query", "key", "value"), ("gate", "first")


def holds(config: Config) -> bool:
    everywhere = len(config.local_blocks) in (0, config.n_block)
    scaling = config.rope_scaling
    stretched = (
        scaling is not None and scaling.kind == "yarn"
    )  # which transformers treats as longrope in this family
    biased = config.qk_norm or config.qkv_bias or config.output_bias or config.feedforward_bias
    return is_plain(replace(config, rotary_dim=config.d_head)) and everywhere and not (biased or stretched)


def write_config(config: Config) -> dict[str, Any]:
    shared, share = write_shared(config, "Phi3ForCausalLM"), config.rotary_dim / config.d_head
    shared["rope_parameters"]["partial_rotary_factor"] = share
    return {
        **shared,
        "partial_rotary_factor": share,
        "original_max_position_embeddings": config.n_context,
        "sliding_window": config.window if config.local_blocks else None,
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_act", "silu")
    shared = read_shared(settings)
    local = read_local({**settings, "layer_types": None}, lambda _: True)
    share = settings.get("partial_rotary_factor", 1.0)
    share = (settings.get("rope_parameters") or {}).get("partial_rotary_factor", share)
    whole = Config.from_json({**shared, **local})
    if whole.rope_scaling is not None and whole.rope_scaling.kind == "yarn":
        raise UserError(
            "config.json has rope_type 'yarn', which means 'longrope' in this family and is not supported"
        )
    if type(share) not in (int, float) or not 0 < share <= 1 or whole.d_head > MOST:
        raise UserError(
            f"partial_rotary_factor = {share!r} in config.json: expected a fraction above 0, up to 1"
        )
    return replace(whole, rotary_dim=int(whole.d_head * share))


def write_tensors(tensors: Tensors, config: Config) -> Named:
    theirs = {name: tensors[ours] for ours, name in _names(config).items() if ours in tensors}
    for i in range(config.n_block):
        qkv = [tensors[f"blocks.{i}.attention.{role}.weight"] for role in ROLES]
        theirs[f"model.layers.{i}.{QKV}"] = concatenate(qkv)
        halves = [tensors[f"blocks.{i}.feedforward.{half}.weight"] for half in HALVES]
        theirs[f"model.layers.{i}.{GATE_UP}"] = concatenate(halves)
    return theirs


def read_tensors(tensors: Tensors, config: Config) -> Named:
    ours = {name: tensors[theirs] for name, theirs in _names(config).items() if theirs in tensors}
    queries, shared = config.n_head * config.d_head, config.n_kv_head * config.d_head
    for i in range(config.n_block):
        parts = torch.split(tensors[f"model.layers.{i}.{QKV}"], [queries, shared, shared])
        for role, part in zip(ROLES, parts, strict=True):
            ours[f"blocks.{i}.attention.{role}.weight"] = part
        for half, part in zip(HALVES, tensors[f"model.layers.{i}.{GATE_UP}"].chunk(2), strict=True):
            ours[f"blocks.{i}.feedforward.{half}.weight"] = part
    return ours


def _names(config: Config) -> dict[str, str]:
    """Map our names to theirs, except for the matrices that are stored together."""
    inside = {
        f"blocks.{i}.{ours}": f"model.layers.{i}.{theirs}"
        for i in range(config.n_block)
        for ours, theirs in BLOCK.items()
    }
    return ENDS | inside


FAMILY = Family("phi3", "model.", holds, write_config, read_config, write_tensors, read_tensors)
