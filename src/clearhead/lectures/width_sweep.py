"""Skip-gram models of several widths, trained the same way and evaluated on sentences that they have not seen.

As on the page (`web/src/model/widthSweep.ts`), with a full softmax. Shapes: V words, D features per vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from clearhead.classics.skip_gram import pairs
from clearhead.lectures.random_numbers import draw, uniform

T = TypeVar("T")

WIDTHS = (1, 2, 4, 8, 16, 32)
HELD_OUT = 200  # sentences
STEPS = 100
LEARNING_RATE = 0.05
WINDOW = 2

PEOPLE = ("I", "you", "we", "they")
OPENINGS = (
    "forgot to make sure that",
    "have to make sure that",
    "want to make sure that",
    "know that",
    "hope that",
)
GROUPS = (
    (("cat", "dog", "horse", "rabbit"), ("fed", "brushed", "petted")),
    (("car", "truck", "bike", "boat"), ("washed", "parked", "repaired")),
    (("rose", "tree", "lawn", "hedge"), ("watered", "planted", "cut")),
)


def make_sentences(count: int, seed: int) -> list[list[str]]:
    """Sentences such as "I forgot to make sure that the dog gets fed", as words."""
    random = draw(seed)

    def choose(options: Sequence[T]) -> T:
        return options[int(next(random) * len(options))]

    sentences = []
    for _ in range(count):
        person, opening, (things, ends) = choose(PEOPLE), choose(OPENINGS), choose(GROUPS)
        thing, end = choose(things), choose(ends)
        sentences.append(f"{person} {opening} the {thing} gets {end}".split())
    return sentences


def sweep(sentences: int, seed: int) -> dict[int, tuple[float, float]]:
    """By width, a model's loss on new sentences, which all widths share, and on those that it was trained on."""
    made = make_sentences(sentences + HELD_OUT, seed)
    vocabulary = sorted({word for words in made for word in words})
    training, held_out = (count_pairs(part, vocabulary) for part in (made[:sentences], made[sentences:]))
    losses = {}
    for width in WIDTHS:
        tables = train(training, width, seed)
        losses[width] = loss(tables, held_out).item(), loss(tables, training).item()
    return losses


def count_pairs(
    sentences: Sequence[Sequence[str]], vocabulary: Sequence[str], window: int = WINDOW
) -> Tensor:
    """How often each word (column) is a neighbor of each center (row): V V."""
    counts = Counter(pair for words in sentences for pair in pairs(words, window))
    rows = [[counts[center, neighbor] for neighbor in vocabulary] for center in vocabulary]
    return torch.tensor(rows, dtype=torch.float64)


def train(counts: Tensor, width: int, seed: int, steps: int = STEPS) -> Tensor:
    """The tables of centers and neighbors, 2 V D, after this many steps of Adam on all pairs."""
    tables = uniform(width**-0.5, seed, 2, len(counts), width).requires_grad_()
    optimizer = torch.optim.Adam([tables], lr=LEARNING_RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(tables, counts).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return tables.detach()


def loss(tables: Tensor, counts: Tensor) -> Tensor:
    """The mean cross-entropy over all pairs."""
    centers, neighbors = tables
    return -(counts * torch.log_softmax(centers @ neighbors.T, dim=-1)).sum() / counts.sum()
