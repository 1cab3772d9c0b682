"""The sampler chooses the next token of one sample from its row of logits, V.

The rules apply in this order, each to the result of the previous ones:

1. `regex` or `json_schema`: tokens that the constraint does not allow get -inf (`constraint.py`).
2. `logit_bias`, added to the logits of individual tokens.
3. `repetition_penalty`, on the tokens of the prompt and of the generated text.
4. `presence_penalty` and `frequency_penalty`, on the tokens of the generated text only.
5. `temperature`, which divides all logits; at 0, decoding is greedy and the rest does not apply.
6. `top_k`; 7. `top_p`; 8. `min_p`.

The token is then sampled with one uniform random number per step. Reported log-probabilities are those of the
model, before any rule.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, full_like, where

from clearhead.errors import UserError
from clearhead.generate.sampling import OPTIONS, Sampling, check_options, is_integer
from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from clearhead.generate.constraint import Grammar

DRAWN = 32  # random numbers drawn at once for sampling on a device


@dataclass(frozen=True)
class SampledToken:
    """A sampled token. Log-probabilities are the model's own, before any rule, if they were requested."""

    id: int
    log_probability: float | None = None
    alternatives: tuple[tuple[int, float], ...] = ()  # the most probable ids, in order
    last: bool = False  # no token may follow
    drafted: bool = False  # a drafter proposed it


@lru_cache(2**16)
def make_token(i: int, last: bool) -> SampledToken:
    """Return a token without log-probabilities; one object serves all of its occurrences."""
    return SampledToken(i, last=last)


class Sampler:
    """Samples the tokens of one sample, independently of all others.

    `sample` is its number among the samples of one request. The samples of a request share its `grammar`, which
    is compiled from the sampling options unless it is given.
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
        check_options(seed=seed)
        self.sampling, self.end_ids = sampling, tokenizer.end_ids
        self.finished = False
        self._generator = torch.Generator().manual_seed(_mix_seed(seed, sample))
        self._drawn: deque[float] = deque()  # random numbers for the next steps
        self._bias = _make_bias(sampling, tokenizer, n_vocab)
        counted = sampling.presence_penalty != 0 or sampling.frequency_penalty != 0
        self._counts = torch.zeros(n_vocab) if counted else None
        self._seen = torch.zeros(n_vocab, dtype=torch.bool) if sampling.repetition_penalty != 1 else None
        if self._seen is not None:
            self._seen[list(prompt)] = True
        grammar = grammar or make_grammar(sampling, tokenizer, n_vocab)
        self._constraint = None if grammar is None else grammar.begin()

    @property
    def is_plain(self) -> bool:
        """Whether only the temperature, `top_k`, `top_p` and `min_p` apply, so that a device can sample."""
        rules = self._constraint, self._bias, self._seen, self._counts, self.sampling.log_probabilities
        return all(rule is None for rule in rules)

    def uniforms(self, count: int) -> Tensor:
        """Return the uniform random numbers for the next steps, one per step, for sampling on the device."""
        return torch.rand(count, generator=self._generator, dtype=torch.double)

    def peek(self, count: int) -> list[float]:
        """Return the uniform random numbers of the next steps, for sampling on the device step by step."""
        if len(self._drawn) < count:
            self._drawn.extend(self.uniforms(DRAWN).tolist())
        return list(islice(self._drawn, count))

    def draw(self) -> float:
        """Return the uniform random number of the next step."""
        if not self._drawn:
            self.peek(1)
        return self._drawn.popleft()

    def accept(self, i: int) -> SampledToken:
        """Record a token that was sampled on the device. Once finished, always return the end token."""
        if self.finished:
            return SampledToken(self.end_ids[0], last=True)
        self.finished = i in self.end_ids
        return make_token(i, self.finished)

    def sample(self, logits: Tensor) -> SampledToken:
        """Sample the next token from one row of logits. Once finished, always return the end token."""
        if self.finished:
            return SampledToken(self.end_ids[0], last=True)
        logits = logits.float().cpu()
        i = self._choose(self._apply_rules(logits))
        if self._counts is not None:
            self._counts[i] += 1
        if self._seen is not None:
            self._seen[i] = True
        self.finished = i in self.end_ids or (self._constraint is not None and not self._constraint.accept(i))
        return SampledToken(i, *self._log_probabilities(logits, i), last=self.finished)

    def _apply_rules(self, logits: Tensor) -> Tensor:
        """Apply the rules that come before the temperature."""
        sampling = self.sampling
        if self._constraint is not None:
            logits = logits.masked_fill(~self._constraint.allowed(), -math.inf)
        if self._bias is not None:
            logits = logits + self._bias
        if self._seen is not None:
            logits = penalize_repetition(logits, self._seen, sampling.repetition_penalty)
        if self._counts is not None:
            logits = penalize_counts(
                logits, self._counts, sampling.presence_penalty, sampling.frequency_penalty
            )
        return logits

    def _choose(self, logits: Tensor) -> int:
        highest = logits.max().item()
        if highest == -math.inf:
            raise UserError("no token is left to sample: `logit_bias` excludes all tokens that may come next")
        if not math.isfinite(highest):
            raise UserError(
                "a logit is infinite or not a number, so no token can be sampled: load the model in float32"
            )
        if self.sampling.temperature == 0:
            return int(logits.argmax())
        # Invert the cumulative distribution at one uniform random number. torch.multinomial draws a number for
        # every token in the vocabulary, which takes longer than everything else.
        sums = filter_logits(logits, self.sampling).softmax(-1).double().cumsum(-1)
        uniform = sums.new_tensor([self.draw()]) if self._drawn else self.uniforms(1)
        number = uniform * sums[-1]
        # Rounding must not select a token past the last one with a probability above 0.
        last = torch.searchsorted(sums, sums[-1:])
        chosen = int(torch.searchsorted(sums, number, right=True).clamp(max=last))
        # An id out of range would break the next step of every sequence in the batch.
        assert chosen < len(logits), f"sampled token {chosen} of {len(logits)}"
        return chosen

    def _log_probabilities(
        self, logits: Tensor, i: int
    ) -> tuple[float | None, tuple[tuple[int, float], ...]]:
        count = self.sampling.log_probabilities
        if count is None:
            return None, ()
        log_probabilities = logits.log_softmax(-1)
        best = log_probabilities.topk(min(count, len(log_probabilities)))
        alternatives = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return log_probabilities[i].item(), tuple(alternatives)


def make_samplers(
    sampling: Sampling, tokenizer: Tokenizer, n_vocab: int, prompt: Sequence[int], seed: int, samples: int
) -> list[Sampler]:
    """Return one sampler per sample of a prompt."""
    grammar = make_grammar(sampling, tokenizer, n_vocab)
    return [Sampler(sampling, tokenizer, n_vocab, prompt, seed, i, grammar) for i in range(samples)]


def make_grammar(
    sampling: Sampling, tokenizer: Tokenizer, n_vocab: int, tool_grammar: str | None = None
) -> Grammar | None:
    if not sampling.constrained and tool_grammar is None:
        return None
    from clearhead.generate.constraint import Grammar  # few requests need llguidance

    return Grammar(tokenizer, n_vocab, sampling.regex, sampling.json_schema, tool_grammar)


def filter_logits(logits: Tensor, sampling: Sampling) -> Tensor:
    """Apply temperature, top_k, top_p and min_p: tokens that cannot be sampled get -inf."""
    # Relative to the largest, so that no logit becomes infinite, however low the temperature.
    logits = (logits - logits.max()) / max(sampling.temperature, 1e-30)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits


def penalize_repetition(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Divide positive logits of seen tokens (V, bool) by the penalty and multiply negative ones by it."""
    return where(seen, where(logits > 0, logits / penalty, logits * penalty), logits)


def penalize_counts(logits: Tensor, counts: Tensor, presence: float, frequency: float) -> Tensor:
    """Subtract `presence` once and `frequency` per occurrence from the logits of tokens, given their counts (V)."""
    return logits - presence * (counts > 0) - frequency * counts


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k most probable tokens."""
    least = logits.topk(min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < least, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the most probable tokens that together reach probability p, and at least one."""
    probabilities = logits.softmax(-1)
    # Tokens with a probability below (1 - p) / V add up to less than 1 - p and need not be sorted. The most
    # probable token is always sorted: if all are equal, rounding may have left it below that bound.
    least = min((1 - p) / len(logits), probabilities.max().item())
    candidates = (probabilities >= least).nonzero()[:, 0]
    ordered, order = probabilities[candidates].sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    before[0] = -1  # below any p, even one that float32 rounds to 0
    kept = candidates[order[before < p]]
    return full_like(logits, -math.inf).index_copy(-1, kept, logits[kept])


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Keep the tokens at least p times as probable as the most probable one."""
    return logits.masked_fill(logits < logits.max() + (math.log(p) if p > 0 else -math.inf), -math.inf)


def _make_bias(sampling: Sampling, tokenizer: Tokenizer, n_vocab: int) -> Tensor | None:
    """Return what to add to each logit, V; the lowest bias excludes a token."""
    if not sampling.logit_bias:
        return None
    biases, lowest = torch.zeros(n_vocab), OPTIONS["logit_bias"].minimum
    assert lowest is not None
    for token, bias in sampling.logit_bias.items():
        i = tokenizer.find(token) if isinstance(token, str) else token
        if not is_integer(i) or not 0 <= i < n_vocab:
            raise UserError(
                f"`logit_bias` of {token!r}: expected a token's text, or an id from 0 to {n_vocab - 1}"
            )
        biases[i] = bias if bias > lowest else -math.inf
    return biases


def _mix_seed(seed: int, sample: int) -> int:
    """Return a 32-bit seed for torch's generator, different for each seed and sample."""
    return int(np.random.SeedSequence((seed, sample)).generate_state(1)[0])
