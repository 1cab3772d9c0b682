"""Beam search: follow the most probable continuations side by side and return the best.

Scores and the stopping rule match those of transformers, so a model gives the same text with either library.

Shapes: N beams, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.generate.decoder import ReorderableDecoder
from clearhead.generate.sampler import SampledToken
from clearhead.generate.sampling import OPTIONS, check_options


@dataclass(frozen=True)
class Beam:
    """A candidate. `total` is its log-probability, `score` the total divided by length ** length_penalty."""

    tokens: tuple[SampledToken, ...] = ()
    total: float = 0.0
    score: float = -math.inf
    row: int = 0  # the beam it extends


@dataclass(frozen=True)
class BeamSearch:
    """Settings of the search. A `length_penalty` above 0 favors longer texts; 0 ranks by probability."""

    beams: int
    length_penalty: float = OPTIONS["length_penalty"].default

    def __post_init__(self) -> None:
        check_options(beams=self.beams, length_penalty=self.length_penalty)

    def run(
        self,
        decoder: ReorderableDecoder,
        prompt: Sequence[int],
        end_ids: Sequence[int],
        tokens: int,
        seconds: float | None = None,
    ) -> list[Beam]:
        """Return the finished beams, best first. The decoder has one sample per beam."""
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        running = [Beam()] + [Beam(total=-math.inf)] * (self.beams - 1)  # all start from the same prompt
        finished: list[Beam] = []
        logits = decoder.prefill(torch.tensor([list(prompt)] * self.beams))
        for length in range(1, tokens + 1):
            log_probabilities = logits.float().cpu().log_softmax(-1)
            final = length == tokens or time.monotonic() >= end
            continuing = []
            for rank, beam in enumerate(self._extend(running, log_probabilities, len(end_ids))):
                if not final and beam.tokens[-1].id not in end_ids:
                    continuing.append(beam)
                elif rank < self.beams:
                    finished.append(beam)
            finished = sorted(finished, key=lambda beam: beam.score, reverse=True)[: self.beams]
            # As in the transformers library, assume that a running beam does not improve its score.
            if not continuing or (len(finished) == self.beams and continuing[0].score <= finished[-1].score):
                break
            running = continuing[: self.beams]
            running += [Beam(running[0].tokens, -math.inf)] * (self.beams - len(running))
            decoder.reorder([beam.row for beam in running])
            logits = decoder.decode_one(torch.tensor([[beam.tokens[-1].id] for beam in running]))
        return finished

    def _extend(self, running: Sequence[Beam], log_probabilities: torch.Tensor, n_end: int) -> list[Beam]:
        """Return the best one-token extensions of the beams, enough that at least N of them do not end."""
        N, V = log_probabilities.shape
        totals = (log_probabilities + torch.tensor([beam.total for beam in running])[:, None]).flatten()
        best = totals.topk(min(max(2, 1 + n_end) * N, len(totals)))
        extended = []
        for total, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, i = divmod(index, V)
            tokens = (*running[row].tokens, SampledToken(i, log_probabilities[row, i].item()))
            if total > -math.inf:
                extended.append(Beam(tokens, total, total / len(tokens) ** self.length_penalty, row))
        return extended
