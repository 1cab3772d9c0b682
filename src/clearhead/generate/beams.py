"""Beam search: the likeliest text that a few candidates, followed side by side, lead to.

Scored and ended as in transformers, so that the same model gives the same text there.

Shapes: N beams, V words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.errors import UserError
from clearhead.generate.continuation import Reorders
from clearhead.generate.sampler import SampledToken
from clearhead.generate.sampling import is_number, is_whole

MOST_BEAMS = 256
MOST_PENALTY = 10


@dataclass(frozen=True)
class Beam:
    """A text's words. `total` is its log-probability, `score` that over its length to a power."""

    drawn: tuple[SampledToken, ...] = ()
    total: float = 0.0
    score: float = -math.inf
    row: int = 0  # the beam that it goes on from


@dataclass(frozen=True)
class Search:
    """How to search. A `length_penalty` above 0 favours longer texts, 0 the likeliest whatever its length."""

    beams: int
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not is_whole(self.beams) or not 1 <= self.beams <= MOST_BEAMS:
            raise UserError(f"beams = {self.beams}: expected 1 to {MOST_BEAMS}")
        if not is_number(self.length_penalty) or not abs(self.length_penalty) <= MOST_PENALTY:
            raise UserError(
                f"length_penalty = {self.length_penalty}: expected -{MOST_PENALTY} to {MOST_PENALTY}, "
                "1 for the mean a token"
            )

    def run(
        self,
        reader: Reorders,
        prompt: Sequence[int],
        end_ids: Sequence[int],
        tokens: int,
        seconds: float | None = None,
    ) -> list[Beam]:
        """The texts found, the best first. The reader is one for as many samples as there are beams."""
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        running = [Beam()] + [Beam(total=-math.inf)] * (self.beams - 1)  # at first they would all be the same
        finished: list[Beam] = []
        unread = torch.tensor([list(prompt)] * self.beams)
        for length in range(1, tokens + 1):
            log_probabilities = reader.read(unread).float().cpu().log_softmax(-1)
            final = length == tokens or time.monotonic() >= end
            going = []
            for rank, beam in enumerate(self._extend(running, log_probabilities, len(end_ids))):
                if not final and beam.drawn[-1].id not in end_ids:
                    going.append(beam)
                elif rank < self.beams:
                    finished.append(beam)
            finished = sorted(finished, key=lambda beam: beam.score, reverse=True)[: self.beams]
            # A running text is not expected to become better than it is now.
            if not going or (len(finished) == self.beams and going[0].score <= finished[-1].score):
                break
            running = going[: self.beams]
            running += [Beam(running[0].drawn, -math.inf)] * (self.beams - len(running))
            reader.reorder([beam.row for beam in running])
            unread = torch.tensor([[beam.drawn[-1].id] for beam in running])
        return finished

    def _extend(self, running: Sequence[Beam], log_probabilities: torch.Tensor, n_end: int) -> list[Beam]:
        """The likeliest texts by one word longer: enough that as many go on as there are beams."""
        N, V = log_probabilities.shape
        totals = (log_probabilities + torch.tensor([beam.total for beam in running])[:, None]).flatten()
        best = totals.topk(min(max(2, 1 + n_end) * N, len(totals)))
        found = []
        for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, i = divmod(place, V)
            drawn = (*running[row].drawn, SampledToken(i, log_probabilities[row, i].item()))
            if total > -math.inf:
                found.append(Beam(drawn, total, total / len(drawn) ** self.length_penalty, row))
        return found
