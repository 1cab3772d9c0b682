"""A family: an architecture's names for settings and tensors, and which of our configs it can express."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.model.config import MOST_BLOCKS, Config, check_number
from clearhead.networks import SingleConfig

Tensors = Mapping[str, Tensor]
Named = dict[str, Tensor]

# Our names for activation functions and theirs, in families other than Llama's.
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new"}
OUR_ACTIVATIONS = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


@dataclass(frozen=True)
class Family:
    """`write_*` convert ours to theirs, `read_*` theirs to ours. Our tensor names are `Transformer`'s.

    A config is a transformer's, except in our own family. Some files omit `prefix` from the names.
    """

    model_type: str
    prefix: str
    holds: Callable[[Config], bool]
    write_config: Callable[[Any], dict[str, Any]]
    read_config: Callable[[dict[str, Any]], SingleConfig]
    write_tensors: Callable[[Tensors, Any], Named]
    read_tensors: Callable[[Tensors, Any], Named]


def concatenate(parts: Sequence[Tensor]) -> Tensor:
    """Join tensors along their first axis.

    For outlines, which have no data, `torch.cat` would first import torch's compiler, which takes seconds.
    """
    first = parts[0]
    if first.is_meta:
        return first.new_empty(sum(len(part) for part in parts), *first.shape[1:])
    return torch.cat(list(parts))


def renaming(
    ends: dict[str, str], block: dict[str, str]
) -> tuple[Callable[[Tensors, Config], Named], Callable[[Tensors, Config], Named]]:
    """`write_tensors` and `read_tensors` for a family that only renames tensors.

    The arguments map our names to theirs; {i} is the index of the block.
    """

    def names(config: Config) -> dict[str, str]:
        inside = {
            f"blocks.{i}.{ours}": theirs.format(i=i)
            for i in range(config.n_block)
            for ours, theirs in block.items()
        }
        return ends | inside

    def write(tensors: Tensors, config: Config) -> Named:
        theirs = names(config)
        return {theirs[name]: tensor for name, tensor in tensors.items()}

    def read(tensors: Tensors, config: Config) -> Named:
        ours = {theirs: ours for ours, theirs in names(config).items()}
        return {ours[name]: tensor for name, tensor in tensors.items()}

    return write, read


def is_pre_norm(config: Config) -> bool:
    """Whether each half of a block has a norm before it and none after it, as in most families."""
    return config.pre_norm and not config.post_norm


def need(settings: dict[str, Any], name: str) -> Any:
    if settings.get(name) is None:
        raise UserError(f"config.json has no {name!r}")
    return settings[name]


def refuse_unless(settings: dict[str, Any], name: str, *usual: Any) -> None:
    """Raise an error for a setting that would change the computation in an unsupported way."""
    if settings.get(name, usual[0]) not in usual:
        raise UserError(f"config.json has {name} = {settings[name]!r}, which is not supported")


def read_activation(settings: dict[str, Any], name: str, default: str) -> str:
    """Our name for the activation function in this setting."""
    theirs = settings.get(name, default)
    if not isinstance(theirs, str) or theirs not in OUR_ACTIVATIONS:
        raise UserError(f"{name} = {theirs!r} in config.json: expected one of {', '.join(OUR_ACTIVATIONS)}")
    return OUR_ACTIVATIONS[theirs]


def read_rotary(settings: dict[str, Any], base: float = 10_000.0) -> dict[str, Any]:
    """RoPE base and scaling, from newer (`rope_parameters`) or older files."""
    rope: dict[str, Any] = {}
    for name in ("rope_scaling", "rope_parameters"):
        given = settings.get(name) or {}
        if not isinstance(given, dict):
            raise UserError(f"{name} = {given!r} in config.json: expected an object")
        rope |= given
    kind = rope.get("rope_type", rope.get("type", "default"))
    scaling = None
    if kind == "linear":
        scaling = {"kind": kind, "factor": need(rope, "factor")}
    elif kind == "llama3":
        scaling = {
            "kind": kind,
            "factor": need(rope, "factor"),
            "low_freq_factor": need(rope, "low_freq_factor"),
            "high_freq_factor": need(rope, "high_freq_factor"),
            "original_context": need(rope, "original_max_position_embeddings"),
        }
    elif kind == "yarn":
        refuse_unless(rope, "truncate", True)
        names = ("original_max_position_embeddings", "max_position_embeddings")
        contexts = (settings.get(names[0]), rope.get(names[0]), settings.get(names[1]))
        scaling = {
            "kind": kind,
            "factor": need(rope, "factor"),
            "low_freq_factor": rope.get("beta_slow") or 1.0,
            "high_freq_factor": rope.get("beta_fast") or 32.0,
            "original_context": next((found for found in contexts if found is not None), None),
            "attention_factor": _attention_factor(rope),
        }
    elif kind != "default":
        raise UserError(
            f"config.json has rope_type {kind!r}, which is not supported: expected default, linear, llama3 or yarn"
        )
    return {
        "position": "rotary",
        "rotary_base": next(
            found for found in (rope.get("rope_theta"), settings.get("rope_theta"), base) if found is not None
        ),
        "rope_scaling": scaling,
    }


def _attention_factor(rope: dict[str, Any]) -> Any:
    """YaRN's factor for rotated vectors: the given one or, as in its paper, one derived from the context factor."""
    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    check_number("factor", rope["factor"], above=0.0, below=1e6)
    scales = rope.get("mscale") or 0, rope.get("mscale_all_dim") or 0
    for name, value in zip(("mscale", "mscale_all_dim"), scales, strict=True):
        check_number(name, value, above=-1.0, below=1e6)
    first, second = scales if all(scales) else (1, 0)
    growth = max(0.0, math.log(rope["factor"])) / 10
    return (first * growth + 1) / (second * growth + 1)


def write_rotary(config: Config) -> dict[str, Any]:
    """The reverse of `read_rotary`, for older and newer readers."""
    scaling, rope = config.rope_scaling, {"rope_type": "default", "rope_theta": config.rotary_base}
    if scaling is None:
        return {"rope_theta": config.rotary_base, "rope_parameters": rope}
    rope |= {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling.kind == "llama3":
        rope |= {
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_context,
        }
    elif scaling.kind == "yarn":
        rope |= {
            "beta_slow": scaling.low_freq_factor,
            "beta_fast": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_context,
            "attention_factor": scaling.attention_factor,
        }
    return {"rope_theta": config.rotary_base, "rope_parameters": rope, "rope_scaling": rope}


def read_local(settings: dict[str, Any], otherwise: Callable[[int], bool]) -> dict[str, Any]:
    """The window and the local blocks, from `layer_types` or, if that is missing, by a rule."""
    n_block, kinds = need(settings, "num_hidden_layers"), settings.get("layer_types")
    window = settings.get("sliding_window")
    if type(n_block) is not int or n_block > MOST_BLOCKS or window is None:
        return {}  # Config reports an invalid number of blocks
    if kinds is None:
        blocks = [i for i in range(n_block) if otherwise(i)]
    elif isinstance(kinds, list) and set(map(str, kinds)) <= {"sliding_attention", "full_attention"}:
        blocks = [i for i, kind in enumerate(kinds) if kind == "sliding_attention"]
    else:
        raise UserError("config.json has layer_types other than sliding_attention and full_attention")
    return {"window": window, "local_blocks": blocks} if blocks else {}


def write_local(config: Config) -> dict[str, Any]:
    kinds = [
        "sliding_attention" if i in config.local_blocks else "full_attention" for i in range(config.n_block)
    ]
    return {"sliding_window": config.window or None, "layer_types": kinds}
