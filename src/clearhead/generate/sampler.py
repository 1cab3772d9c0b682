"""Drawing the words of one sample: its own chance, its own counts, its own place in a grammar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.generate.sampling import (
    MOST_BIAS,
    Sampling,
    is_whole,
    narrow,
    penalise_counts,
    penalise_repetition,
)
from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from clearhead.generate.constraint import Grammar


@dataclass(frozen=True)
class SampledToken:
    """One word as it was drawn.

    Log-probabilities are the model's own, before temperature and every other rule; there when asked for.
    """

    id: int
    log_probability: float | None = None
    alternatives: tuple[tuple[int, float], ...] = ()  # the likeliest ids, the likeliest first
    last: bool = False  # nothing may follow


class Sampler:
    """Draws the words of one sample, whatever other samples do: it can be held by whoever reads for it.

    `sample` numbers those of the same seed and prompt. A grammar is made from the sampling unless it is
    given; the samples of one request share it.
    """

    def __init__(
        self,
        sampling: Sampling,
        tokenizer: Tokenizer,
        n_vocab: int,
        prompt: Sequence[int] = (),
        seed: int = 0,
        sample: int = 0,
        grammar: Grammar | None = None,
    ) -> None:
        check_seed(seed)
        self.sampling, self.end_ids = sampling, tokenizer.end_ids
        self.over = False
        self._generator = torch.Generator().manual_seed(_seed(seed, sample))
        self._bias = _read_bias(sampling, tokenizer, n_vocab)
        self._counts = torch.zeros(n_vocab) if _counts(sampling) else None
        self._seen = torch.zeros(n_vocab, dtype=torch.bool) if sampling.repetition_penalty != 1 else None
        if self._seen is not None:
            self._seen[list(prompt)] = True
        grammar = grammar or make_grammar(sampling, tokenizer, n_vocab)
        self._constraint = None if grammar is None else grammar.begin()

    def numbers(self, count: int) -> Tensor:
        """What chance has for so many words, from 0 to 1: for whoever draws them elsewhere."""
        return torch.rand(count, generator=self._generator, dtype=torch.double)

    def take(self, i: int) -> SampledToken:
        """A word that was drawn elsewhere. Once it is over, the end again and again."""
        if self.over:
            return SampledToken(self.end_ids[0], last=True)
        self.over = i in self.end_ids
        return SampledToken(i, last=self.over)

    def draw(self, logits: Tensor) -> SampledToken:
        """The next word, from one row of logits. Once it is over, the end again and again."""
        if self.over:
            return SampledToken(self.end_ids[0], last=True)
        logits = logits.float().cpu()
        i = self._pick(self._apply_rules(logits))
        if self._counts is not None:
            self._counts[i] += 1
        if self._seen is not None:
            self._seen[i] = True
        self.over = i in self.end_ids or (self._constraint is not None and not self._constraint.take(i))
        return SampledToken(i, *self._tell(logits, i), last=self.over)

    def _apply_rules(self, logits: Tensor) -> Tensor:
        """Those that come before the temperature; their order is told in `sampling.py`."""
        sampling = self.sampling
        if self._constraint is not None:
            logits = logits.masked_fill(~self._constraint.allowed(), -math.inf)
        if self._bias is not None:
            logits = logits + self._bias
        if self._seen is not None:
            logits = penalise_repetition(logits, self._seen, sampling.repetition_penalty)
        if self._counts is not None:
            logits = penalise_counts(
                logits, self._counts, sampling.presence_penalty, sampling.frequency_penalty
            )
        return logits

    def _pick(self, logits: Tensor) -> int:
        highest = logits.max().item()
        if highest == -math.inf:
            raise UserError("no word is left to draw: logit_bias rules out all that may come next")
        if not math.isfinite(highest):
            raise UserError("a logit is infinite or not a number: no word can be drawn; load it in float32")
        if self.sampling.temperature == 0:
            return int(logits.argmax())
        # Where a number from 0 to 1 falls among the probabilities laid end to end. torch.multinomial draws a
        # number for every word of the vocabulary, which takes longer than all the rest.
        sums = narrow(logits, self.sampling).softmax(-1).double().cumsum(-1)
        number = torch.rand(1, generator=self._generator, dtype=torch.double) * sums[-1]
        # No further than the last word that adds anything, should rounding lead there.
        last = torch.searchsorted(sums, sums[-1:])
        picked = int(torch.searchsorted(sums, number, right=True).clamp(max=last))
        # A word that is not there would go into the next step of all that are written together.
        assert picked < len(logits), f"word {picked} was drawn of {len(logits)}"
        return picked

    def _tell(self, logits: Tensor, i: int) -> tuple[float | None, tuple[tuple[int, float], ...]]:
        count = self.sampling.log_probabilities
        if count is None:
            return None, ()
        told = logits.log_softmax(-1)
        best = told.topk(min(count, len(told)))
        return told[i].item(), tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def make_drawers(
    sampling: Sampling, tokenizer: Tokenizer, n_vocab: int, prompt: Sequence[int], seed: int, samples: int
) -> list[Sampler]:
    """One for each sample of a prompt; what is wrong with the settings is said here."""
    grammar = make_grammar(sampling, tokenizer, n_vocab)
    return [Sampler(sampling, tokenizer, n_vocab, prompt, seed, i, grammar) for i in range(samples)]


def make_grammar(sampling: Sampling, tokenizer: Tokenizer, n_vocab: int) -> Grammar | None:
    if not sampling.constrained:
        return None
    from clearhead.generate.constraint import Grammar  # few texts are held to one

    return Grammar(tokenizer, n_vocab, sampling.regex, sampling.json_schema)


def check_seed(seed: int) -> None:
    if not is_whole(seed) or not 0 <= seed < 2**32:
        raise UserError(f"seed = {seed!r}: expected 0 to {2**32 - 1}")


def _counts(sampling: Sampling) -> bool:
    return sampling.presence_penalty != 0 or sampling.frequency_penalty != 0


def _read_bias(sampling: Sampling, tokenizer: Tokenizer, n_vocab: int) -> Tensor | None:
    """What to add to each word's logit, V. As much less as there can be is never."""
    if not sampling.logit_bias:
        return None
    biases = torch.zeros(n_vocab)
    for token, bias in sampling.logit_bias.items():
        i = tokenizer.find(token) if isinstance(token, str) else token
        if not is_whole(i) or not 0 <= i < n_vocab:
            raise UserError(f"logit_bias of {token!r}: expected a token's text, or an id 0 to {n_vocab - 1}")
        biases[i] = bias if bias > -MOST_BIAS else -math.inf
    return biases


def _seed(seed: int, sample: int) -> int:
    """A number of 32 bits, which is all that torch's generator takes in, for each sample of each seed."""
    return int(np.random.SeedSequence((seed, sample)).generate_state(1)[0])
