"""Decoders for an ensemble: those of its members, whose predictions are averaged.

All members see the same tokens. Once the shortest context is full, each token costs a forward pass of every member over
the last `n_context` tokens.

Shapes: N samples of one prompt, T positions, B rows of a step, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from clearhead.generate.batch_decoder import BatchDecoder, ChunkedPrefill
from clearhead.generate.decoder import Decoder, ReorderableDecoder
from clearhead.model.config import Config
from clearhead.networks import Ensemble, log_mean


class EnsembleDecoder:
    """A `Decoder` for each member."""

    def __init__(self, network: Ensemble, members: Sequence[ReorderableDecoder], samples: int = 1) -> None:
        self.network, self.members = network, members
        limited = any(isinstance(each, Config) for each in network.config.members)
        self.max_length = network.config.n_context if limited else math.inf
        device = next(network.parameters()).device
        self.ids = torch.empty(samples, 0, dtype=torch.long, device=device)

    def prefill(self, ids: Tensor) -> Tensor:
        return self._extend(ids, lambda member: member.prefill(ids))

    def decode_one(self, ids: Tensor) -> Tensor:
        return self._extend(ids, lambda member: member.decode_one(ids))

    @torch.inference_mode()
    def _extend(self, ids: Tensor, run: Callable[[Decoder], Tensor]) -> Tensor:
        self.ids = torch.cat((self.ids, ids.to(self.ids.device)), dim=1)
        if self.ids.shape[1] <= self.max_length:
            return log_mean([run(each) for each in self.members])
        return self.network(self.ids[:, -self.network.config.n_context :])[:, -1]

    def reorder(self, rows: Sequence[int]) -> None:
        self.ids = self.ids[list(rows)]
        for each in self.members:
            each.reorder(rows)


class EnsemblePrefill:
    """A `ChunkedPrefill` of each member, one chunk after another."""

    def __init__(self, members: Sequence[ChunkedPrefill]) -> None:
        self.members = members
        self.logits: Tensor | None = None

    def run_chunk(self) -> int:
        done = max(each.run_chunk() for each in self.members)
        rows = [each.logits for each in self.members if each.logits is not None]
        if len(rows) == len(self.members):
            self.logits = log_mean(rows)
        return done


class EnsembleBatchDecoder(BatchDecoder):
    """A batch decoder for each member, with the same slots."""

    def __init__(self, network: Ensemble, members: Sequence[BatchDecoder]) -> None:
        self.members = members
        self.max_length = min(each.max_length for each in members)
        device = next(network.parameters()).device
        super().__init__(network.config, members[0].n_slot, device, full_width=False)

    def _find_widths(self) -> list[int]:
        """Return one width: each member divides the rows as it needs."""
        return [self.n_slot]

    def prefill(self, ids: Sequence[int]) -> EnsemblePrefill:
        seen = ids if len(ids) <= self.max_length else ids[-self.config.n_context :]
        return EnsemblePrefill([each.prefill(seen) for each in self.members])

    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        assert isinstance(prefill, EnsemblePrefill)
        for decoder, part in zip(self.members, prefill.members, strict=True):
            decoder.insert(slot, part)

    def extend(self, slot: int, position: int) -> None:
        for each in self.members:
            each.extend(slot, position)

    def _step(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        width: int,  # noqa: ARG002
    ) -> Tensor:
        return log_mean([each.decode_one(slots, ids, positions) for each in self.members])
