"""From logits to the next word: each rule a small function on one row of logits, V."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.errors import UserError


@dataclass(frozen=True)
class Sampling:
    """How the next word is drawn. Temperature 0 takes the likeliest."""

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature = {self.temperature}: expected 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise UserError(f"top_k = {self.top_k}: expected at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UserError(f"top_p = {self.top_p}: expected more than 0 and at most 1")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise UserError(f"min_p = {self.min_p}: expected between 0 and 1")
        if not 0 < self.repetition_penalty < math.inf:
            raise UserError(
                f"repetition_penalty = {self.repetition_penalty}: expected more than 0 (1 is none)"
            )


def sample(logits: Tensor, sampling: Sampling, seen: Tensor, generator: torch.Generator) -> int:
    """Draw one word. `seen` are the ids so far, for the repetition penalty."""
    logits = logits.float().cpu()
    if sampling.repetition_penalty != 1:
        logits = penalise_repetition(logits, seen, sampling.repetition_penalty)
    if sampling.temperature == 0:
        return int(logits.argmax())
    probabilities = allowed(logits, sampling).softmax(-1)
    return int(torch.multinomial(probabilities, 1, generator=generator))


def allowed(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits over the temperature, with every word that may not be drawn at -inf."""
    # From the largest down, so that no temperature, however small, makes it infinite.
    logits = (logits - logits.max()) / max(sampling.temperature, 1e-30)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits


def penalise_repetition(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Words already there: positive logits divided by the penalty, negative ones multiplied."""
    ids = torch.unique(seen).cpu()
    old = logits[ids]
    return logits.index_copy(-1, ids, torch.where(old > 0, old / penalty, old * penalty))


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Only the k likeliest words."""
    least = logits.topk(min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < least, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Only the likeliest words that together reach probability p, and always the first."""
    ordered, order = logits.sort(descending=True)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    drop = before >= p
    drop[0] = False
    return logits.index_fill(-1, order[drop], -math.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Only words at least p times as likely as the likeliest."""
    return logits.masked_fill(logits < logits.max() + (math.log(p) if p > 0 else -math.inf), -math.inf)
