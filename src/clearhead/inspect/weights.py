"""Weights by name in the lecture's notation: row vectors, x W, one head at a time."""

from __future__ import annotations

import re

from torch import Tensor

from clearhead.errors import UserError, guess
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer

_MATRIX = {"W_Q": "query", "W_K": "key", "W_V": "value"}
_BIAS = {"b_Q": "query", "b_K": "key", "b_V": "value"}


def weight_names(config: Config) -> list[str]:
    """Return all names that `weight` accepts."""
    ends = ["embedding.W", "unembedding.W", "final.gain"]
    ends += ["position.W"] if config.position == "learned" else []
    ends += ["final.shift"] if config.norm == "layer" else []
    inside, heads = ["W_1", "W_2"], [*_MATRIX, "W_O", "QK", "OV"]
    norms = ("normed", "normed2") * config.pre_norm
    norms += ("attention_normed", "feedforward_normed") * config.post_norm
    for norm in norms:
        inside += [f"{norm}.gain", f"{norm}.shift"] if config.norm == "layer" else [f"{norm}.gain"]
    inside += ["W_gate"] if config.gated else []
    inside += ["b_O"] if config.output_bias else []
    inside += ["b_1", "b_2"] if config.feedforward_bias else []
    inside += ["b_gate"] if config.feedforward_bias and config.gated else []
    for norm in ("query_norm", "key_norm") * config.qk_norm:
        inside += [f"{norm}.gain", f"{norm}.shift"] if config.norm == "layer" else [f"{norm}.gain"]
    heads += list(_BIAS) if config.qkv_bias else []
    names = [f"block.{i}.{name}" for i in range(config.n_block) for name in inside]
    for i in range(config.n_block):
        names += [f"block.{i}.head.{j}.{name}" for j in range(config.n_head) for name in heads]
    return ends + names


def weight(network: Transformer, name: str) -> Tensor:
    """Return a matrix, bias, gain or shift, or a product QK = W_Q W_Kᵀ or OV = W_V W_O of a head."""
    return view_weight(network, name).detach()


def view_weight(network: Transformer, name: str) -> Tensor:
    """Return a weight as a view of the parameter that it is part of; a product is computed."""
    config = network.config
    match = re.fullmatch(r"(?:block\.(-?\d+)\.)?(?:head\.(-?\d+)\.)?(\w+(?:\.\w+)?)", str(name))
    for number, what, count in (
        (match and match[1], "block", config.n_block),
        (match and match[2], "head", config.n_head),
    ):
        if number and not 0 <= int(number) < count:
            raise UserError(f"weight {name!r} does not exist: this model has {what}s 0 to {count - 1}")
    names = weight_names(config)
    if not match or name not in names:
        ends = [known for known in names if not re.search(r"\.[1-9]", known)]
        listing = f"expected one of {', '.join(ends)}, …"
        raise UserError(f"weight {name!r} does not exist: {listing}{guess(str(name), names)}")
    if match[1] is None:
        return _end(network, name)
    block = network.blocks[int(match[1])]
    assert isinstance(block, Block)
    if match[2] is None:
        return _of_block(block, match[3])
    return _of_head(block, config, int(match[2]), match[3])


def _end(network: Transformer, name: str) -> Tensor:
    if name == "unembedding.W":
        return network.unembedding.weight.T
    if name == "position.W":
        assert network.position is not None
        return network.position.weight
    if name.startswith("final."):
        part: Tensor = getattr(network.final_norm, name.removeprefix("final."))
        return part
    return network.embedding.weight


def _of_block(block: Block, name: str) -> Tensor:
    feedforward, attention = block.feedforward, block.attention
    linears = {
        "1": feedforward.first,
        "2": feedforward.second,
        "gate": feedforward.gate,
        "O": attention.output,
    }
    norms = {
        "normed": block.norm,
        "normed2": block.norm2,
        "attention_normed": block.attention_norm,
        "feedforward_normed": block.feedforward_norm,
        "query_norm": attention.query_norm,
        "key_norm": attention.key_norm,
    }
    if "." in name:
        norm, part = name.split(".")
        gain_or_shift: Tensor = getattr(norms[norm], part)
        return gain_or_shift
    kind, which = name.split("_")
    linear = linears[which]
    assert linear is not None
    return linear.weight.T if kind == "W" else linear.bias


def _of_head(block: Block, config: Config, head: int, name: str) -> Tensor:
    if name == "QK":
        return _of_head(block, config, head, "W_Q") @ _of_head(block, config, head, "W_K").T
    if name == "OV":
        return _of_head(block, config, head, "W_V") @ _of_head(block, config, head, "W_O")
    D = config.d_head
    if name == "W_O":
        return block.attention.output.weight.T[D * head : D * (head + 1)]
    role = (_MATRIX | _BIAS)[name]
    number = head if role == "query" else head // (config.n_head // config.n_kv_head)
    own = slice(D * number, D * (number + 1))
    linear = getattr(block.attention, role)
    return linear.weight[own].T if name in _MATRIX else linear.bias[own]
