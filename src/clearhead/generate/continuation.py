"""Going on from a prompt, one word after the other: read the prompt, then a step a word.

Shapes: N samples of the same prompt, T positions, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.generate.sampler import SampledToken, Sampler
from clearhead.model.kv_cache import KVCache
from clearhead.model.transformer import Transformer


class Reads(Protocol):
    """Whatever reads a growing text and says what may come next: N T → N V."""

    def read(self, ids: Tensor) -> Tensor: ...


class Reorders(Reads, Protocol):
    """One whose samples can go on from one another."""

    def reorder(self, rows: Sequence[int]) -> None: ...


class Reader:
    """Reads a growing text and says what may come next.

    Once the context is full the window slides: the last `n_context` words are read again for each new one.
    """

    def __init__(self, network: Transformer, samples: int = 1, longest: int | None = None) -> None:
        parameter = next(network.parameters())
        self.network = network
        self.n_context = network.config.n_context
        self.ids = torch.empty(samples, 0, dtype=torch.long, device=parameter.device)
        size = self.n_context if longest is None else min(self.n_context, longest)
        self.cache = KVCache(network.config, samples, size, parameter.device, parameter.dtype)

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        """Logits of the word after these: N T → N V."""
        ids = ids.to(self.ids.device)
        self.ids = torch.cat((self.ids, ids), dim=1)
        if self.ids.shape[1] <= self.n_context:
            return self.network(ids, cache=self.cache)[:, -1]
        return self.network(self.ids[:, -self.n_context :])[:, -1]

    @torch.inference_mode()
    def reorder(self, rows: Sequence[int]) -> None:
        """Sample n goes on from what row rows[n] has read."""
        places = torch.tensor(rows, device=self.ids.device)
        self.ids = self.ids[places]
        for block in self.cache.blocks:
            for kept in (block.key, block.value):
                kept[:, :, : self.cache.length] = kept[places, :, : self.cache.length]


class StateReader:
    """The same with a recurrent network: what it carries along is all of the past that it needs."""

    def __init__(self, network: Recurrent, samples: int = 1) -> None:
        self.network, self.state = network, network.begin(samples)

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        return self.network.unembedding(
            self.network.hidden_states(ids.to(self.state.room.device), self.state)[:, -1]
        )

    def reorder(self, rows: Sequence[int]) -> None:
        self.state = self.state.take(rows)


class WindowReader:
    """The same with an n-gram: only the last few words are kept, since no others make a difference."""

    def __init__(self, network: NGram, samples: int = 1) -> None:
        self.network = network
        self.ids: list[list[int]] = [[] for _ in range(samples)]

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        rows = zip(self.ids, ids.tolist(), strict=True)
        self.ids = [self.network.window([*before, *new]) for before, new in rows]
        return self.network(torch.tensor(self.ids, device=self.network.device))[:, -1]

    def reorder(self, rows: Sequence[int]) -> None:
        self.ids = [self.ids[row] for row in rows]


def continuations(
    reader: Reads, prompt: Sequence[int], drawers: Sequence[Sampler]
) -> Iterator[list[SampledToken]]:
    """Endless: at each turn the next word of every sample, each drawn by its own drawer."""
    unread = torch.tensor([list(prompt)] * len(drawers))
    while True:
        logits = reader.read(unread)
        drawn = [drawer.draw(row) for drawer, row in zip(drawers, logits, strict=True)]
        yield drawn
        unread = torch.tensor([[each.id] for each in drawn])
