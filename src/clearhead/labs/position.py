"""A sentence and the same words shuffled, with and without positions."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Result, Table
from clearhead.model.config import Config, PositionKind
from clearhead.model.transformer import Transformer

SPREAD = 0.2  # standard deviation of the weights, ten times the usual one, so that words influence each other
ROUNDING = 1e-4  # of the norm; changes below it are rounding errors, about 1e-6


def run(sentence: str, position: str, causal: bool, seed: int) -> Result:
    """Measure how far each word's final vector moves between the two orders, relative to its norm."""
    words = sentence.split()
    if len(set(words)) < 2:
        raise UserError(f"sentence = {sentence!r}: expected at least two different words")
    order, generator = list(range(len(words))), torch.Generator().manual_seed(seed)
    while [words[i] for i in order] == words:  # a shuffle may be the identity
        order = torch.randperm(len(words), generator=generator).tolist()
    ids = torch.tensor([sorted(set(words)).index(word) for word in words])
    went = [order.index(i) for i in range(len(order))]
    moved = {}
    for name, kind in (("no positions", "none"), (f"{position} positions", position)):
        network = _make_network(len(set(words)), len(words), cast(PositionKind, kind), causal, seed)
        before, after = (_vectors(network, each) for each in (ids, ids[order]))
        moved[name] = (after[went] - before).norm(dim=-1) / before.norm(dim=-1)
    without, with_position = moved.values()
    return Result(
        lab="position",
        settings={"sentence": sentence, "position": position, "causal": causal, "seed": seed},
        findings={
            "shuffled": " ".join(words[i] for i in order),
            "words that keep their vector without positions": int((without < ROUNDING).sum()),
            "largest change without positions": without.max().item(),
            "smallest change with positions": with_position.min().item(),
            "mean change with positions": with_position.mean().item(),
        },
        parts=[
            Table(
                "how far each word's vector moves",
                [f"{word}, {i} → {went[i]}" for i, word in enumerate(words)],
                list(moved),
                torch.stack(list(moved.values()), dim=1).tolist(),
                shaded=True,
            ),
        ],
    )


def _make_network(n_vocab: int, n_context: int, kind: PositionKind, causal: bool, seed: int) -> Transformer:
    """A network with random weights from the seed.

    Position weights are drawn last, so that all other weights are the same for every kind of position.
    """
    config = Config(n_vocab, n_context, n_block=2, n_head=2, d_model=32, position=kind, causal=causal)
    network, generator = Transformer(config).eval(), torch.Generator().manual_seed(seed)
    weights = [(name, each.data) for name, each in network.named_parameters() if each.dim() == 2]
    for _, each in sorted(weights, key=lambda named: named[0] == "position.weight"):
        each.normal_(std=SPREAD, generator=generator)
    return network


@torch.no_grad()
def _vectors(network: Transformer, ids: Tensor) -> Tensor:
    return Trace(network, ids[None], [[]]).read("final")
