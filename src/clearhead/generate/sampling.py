"""From logits to the next word: each rule a small function on one row of logits, V.

The order of the rules, each on what the ones before have left:

1. a regular expression or a JSON schema: whatever it does not allow is at -inf (`constraint.py`);
2. `logit_bias`, added to the logits of single words;
3. `repetition_penalty`, on the words of the prompt and of what was written after it;
4. `presence_penalty` and `frequency_penalty`, on the words of what was written alone;
5. `temperature`, by which all logits are divided; at 0 the likeliest word is taken, and nothing else counts;
6. `top_k`;
7. `top_p`;
8. `min_p`.

What is left is drawn from, as its probabilities say. Log-probabilities are told as they were before the first
of these.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Self

from torch import Tensor, full_like, where

from clearhead.errors import UserError, guess

MOST_BIAS = 100.0  # of logits, either way; a word with as much less is never drawn
MOST_PENALTY = 2.0
MOST_ALTERNATIVES = 20


@dataclass(frozen=True)
class Sampling:
    """How the next word is drawn. Temperature 0 takes the likeliest."""

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int | str, float] | None = None  # by id, or by the text of one token
    regex: str | None = None
    json_schema: Mapping[str, Any] | None = None
    log_probabilities: int | None = None  # of each word drawn, with so many of the likeliest

    def __post_init__(self) -> None:
        self._check("temperature", "a finite number, 0 or more", lambda x: 0 <= x < math.inf)
        self._check("top_k", "a whole number, at least 1", lambda x: is_whole(x) and x >= 1)
        self._check("top_p", "more than 0 and at most 1", lambda x: 0 < x <= 1)
        self._check("min_p", "between 0 and 1", lambda x: 0 <= x <= 1)
        self._check(
            "repetition_penalty", "a finite number, more than 0 (1 is none)", lambda x: 0 < x < math.inf
        )
        for name in ("presence_penalty", "frequency_penalty"):
            self._check(
                name, f"-{MOST_PENALTY:g} to {MOST_PENALTY:g} (0 is none)", lambda x: abs(x) <= MOST_PENALTY
            )
        self._check(
            "log_probabilities",
            f"how many of the likeliest words to tell, 0 to {MOST_ALTERNATIVES}",
            lambda x: is_whole(x) and 0 <= x <= MOST_ALTERNATIVES,
        )
        if self.logit_bias is not None and not isinstance(self.logit_bias, Mapping):
            raise UserError(f"logit_bias = {self.logit_bias!r}: expected tokens and their numbers, as a dict")
        for token, bias in (self.logit_bias or {}).items():
            if not is_number(bias) or not (abs(bias) <= MOST_BIAS or bias == -math.inf):
                raise UserError(
                    f"logit_bias of {token!r} = {bias!r}: expected -{MOST_BIAS:g} (never) to {MOST_BIAS:g}"
                )
        if self.regex is not None and self.json_schema is not None:
            raise UserError("regex and json_schema were both given: expected one of them")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """From settings by name, of which none may be unknown."""
        refuse_unknown(settings, [field.name for field in fields(cls)])
        return cls(**settings)

    @property
    def constrained(self) -> bool:
        return self.regex is not None or self.json_schema is not None

    def _check(self, name: str, expected: str, fits: Any) -> None:
        value = getattr(self, name)
        optional = type(self).__dataclass_fields__[name].default is None
        if (value is None and optional) or (is_number(value) and fits(value)):
            return
        raise UserError(f"{name} = {value!r}: expected {expected}")


def refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise UserError(f"unknown setting {name!r}{guess(name, known)}")


def narrow(logits: Tensor, sampling: Sampling) -> Tensor:
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
    """Words already there (V, true): positive logits divided by the penalty, negative ones multiplied."""
    return where(seen, where(logits > 0, logits / penalty, logits * penalty), logits)


def penalise_counts(logits: Tensor, counts: Tensor, presence: float, frequency: float) -> Tensor:
    """Words written so often (V): the one is taken off once, the other each time."""
    return logits - presence * (counts > 0) - frequency * counts


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Only the k likeliest words."""
    least = logits.topk(min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < least, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Only the likeliest words that together reach probability p, and always the first."""
    probabilities = logits.softmax(-1)
    # Words with less than (1 - p) / V each have less than 1 - p together: they need not be sorted.
    # The likeliest is always one that is: where all are alike, rounding may have left it with less.
    least = min((1 - p) / len(logits), probabilities.max().item())
    places = (probabilities >= least).nonzero()[:, 0]
    ordered, order = probabilities[places].sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    before[0] = -1  # below any p, also one so small that a float32 takes it for 0
    kept = places[order[before < p]]
    return full_like(logits, -math.inf).index_copy(-1, kept, logits[kept])


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Only words at least p times as likely as the likeliest."""
    return logits.masked_fill(logits < logits.max() + (math.log(p) if p > 0 else -math.inf), -math.inf)


def is_number(value: object) -> bool:
    """Python's own or NumPy's, and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
