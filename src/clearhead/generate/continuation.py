"""Going on from a prompt, one word after the other: read the prompt, then a step a word, then slide.

Shapes: N samples of the same prompt, T positions, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from clearhead.generate.sampling import Sampling, sample
from clearhead.model.cache import Cache
from clearhead.model.transformer import Transformer


class Reads(Protocol):
    """Whatever reads a growing text and says what may come next; `ids` is what it has read, N T."""

    ids: Tensor

    def read(self, ids: Tensor) -> Tensor: ...


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
        self.cache = Cache(network.config, samples, size, parameter.device, parameter.dtype)

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        """Logits of the word after these: N T → N V."""
        ids = ids.to(self.ids.device)
        self.ids = torch.cat((self.ids, ids), dim=1)
        if self.ids.shape[1] <= self.n_context:
            return self.network(ids, cache=self.cache)[:, -1]
        return self.network(self.ids[:, -self.n_context :])[:, -1]


def continuations(
    reader: Reads, prompt: Sequence[int], sampling: Sampling, seed: int, samples: int = 1
) -> Iterator[list[int]]:
    """Endless: at each turn the next id of every sample. Each sample draws from a stream of its own."""
    generators = [torch.Generator().manual_seed(_seed(seed, i)) for i in range(samples)]
    unread = torch.tensor([list(prompt)] * samples)
    while True:
        logits = reader.read(unread)
        ids = [
            sample(row, sampling, seen, generator)
            for row, seen, generator in zip(logits, reader.ids, generators, strict=True)
        ]
        yield ids
        unread = torch.tensor(ids)[:, None]


def _seed(seed: int, sample: int) -> int:
    """A number of 32 bits, which is all that torch's generator takes in, for each sample of each seed."""
    return int(np.random.SeedSequence((seed, sample)).generate_state(1)[0])
