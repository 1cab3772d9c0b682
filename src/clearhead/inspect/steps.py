"""The steps of one head over a text, computed with the lecture's own functions.

Shapes: T positions, D features a head, C features of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.model.attention import compare, divide, mask, mix, softmax, triangle, write
from clearhead.model.block import Block
from clearhead.model.transformer import Transformer


@dataclass(frozen=True)
class Steps:
    """What one head computes, in order."""

    query: Tensor  # T D, as compared: after QK-norm and rotation
    key: Tensor
    value: Tensor
    scores: Tensor  # T T
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    mixed: Tensor  # T D
    output: Tensor  # T C


def head_steps(network: Transformer, ids: Tensor, block: int, head: int) -> Steps:
    """Run the blocks below, then this head step by step."""
    config = network.config
    for name, given, count in (("block", block, config.n_block), ("head", head, config.n_head)):
        if not 0 <= given < count:
            raise UserError(f"{name} {given} does not exist: this model has {name}s 0 to {count - 1}")
    x = next(islice(block_inputs(network, ids), block, None))
    return _head_steps(network, x, block, head)


def antecedent_scores(network: Transformer, examples: Sequence[tuple[Tensor, int, int]]) -> Tensor:
    """How much of its weight each head puts on the antecedent, looking from the pronoun: blocks × heads.

    An example is a text's ids, the pronoun's position and the antecedent's; the mean over all is given.
    """
    config = network.config
    total = torch.zeros(config.n_block, config.n_head)
    for ids, pronoun, antecedent in examples:
        for block, x in enumerate(block_inputs(network, ids)):
            for head in range(config.n_head):
                total[block, head] += _head_steps(network, x, block, head).weights[pronoun, antecedent].cpu()
    return total / len(examples)


def block_inputs(network: Transformer, ids: Tensor) -> Iterator[Tensor]:
    """The residual stream as it enters each block: 1 T C."""
    positions = network.positions(ids[None])
    rotation = network.rotation(positions)
    x = network.embed(ids[None], positions)
    for block in network.blocks:
        yield x
        x = block(x, rotation, causal=network.config.causal)


def _head_steps(network: Transformer, x: Tensor, block: int, head: int) -> Steps:
    config, T = network.config, x.shape[1]
    chosen = network.blocks[block]
    assert isinstance(chosen, Block)
    rotation = network.rotation(torch.arange(T, device=x.device)[None])
    queries, keys, values = chosen.attention.project_heads(chosen.norm(x), rotation)
    shared = head // (config.n_head // config.n_kv_head)
    query, key, value = queries[0, head], keys[0, shared], values[0, shared]
    scores = compare(query, key)
    scaled = divide(scores, config.d_head)
    masked = mask(scaled, triangle(T, T, x.device)) if config.causal else scaled
    weights = softmax(masked)
    mixed = mix(weights, value)
    rows = slice(head * config.d_head, (head + 1) * config.d_head)
    output = write(mixed, chosen.attention.output.weight.T[rows])
    return Steps(query, key, value, scores, scaled, masked, weights, mixed, output)
