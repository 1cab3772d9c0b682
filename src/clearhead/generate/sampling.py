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

from clearhead.errors import UserError, guess

MAX_BIAS = 100.0  # of logits, either way; a word with as much less is never drawn
MAX_PENALTY = 2.0
MAX_ALTERNATIVES = 20
SLOTS, MAX_SLOTS = 32, 1024  # samples generated at once by an engine
QUEUE, MAX_QUEUE = 256, 100_000  # requests waiting for an engine


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
        self._check("top_k", "a whole number, at least 1", lambda x: is_integer(x) and x >= 1)
        self._check("top_p", "more than 0 and at most 1", lambda x: 0 < x <= 1)
        self._check("min_p", "between 0 and 1", lambda x: 0 <= x <= 1)
        self._check(
            "repetition_penalty", "a finite number, more than 0 (1 is none)", lambda x: 0 < x < math.inf
        )
        for name in ("presence_penalty", "frequency_penalty"):
            self._check(
                name, f"-{MAX_PENALTY:g} to {MAX_PENALTY:g} (0 is none)", lambda x: abs(x) <= MAX_PENALTY
            )
        self._check(
            "log_probabilities",
            f"how many of the likeliest words to tell, 0 to {MAX_ALTERNATIVES}",
            lambda x: is_integer(x) and 0 <= x <= MAX_ALTERNATIVES,
        )
        if self.logit_bias is not None and not isinstance(self.logit_bias, Mapping):
            raise UserError(f"logit_bias = {self.logit_bias!r}: expected tokens and their numbers, as a dict")
        for token, bias in (self.logit_bias or {}).items():
            if not is_number(bias) or not (abs(bias) <= MAX_BIAS or bias == -math.inf):
                raise UserError(
                    f"logit_bias of {token!r} = {bias!r}: expected -{MAX_BIAS:g} (never) to {MAX_BIAS:g}"
                )
        if self.regex is not None and self.json_schema is not None:
            raise UserError("regex and json_schema were both given: expected one of them")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """From settings by name, of which none may be unknown."""
        check_names(settings, [field.name for field in fields(cls)])
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


def check_names(given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise UserError(f"unknown setting {name!r}{guess(name, known)}")


def check_seed(seed: int) -> None:
    if not is_integer(seed) or not 0 <= seed < 2**32:
        raise UserError(f"seed = {seed!r}: expected 0 to {2**32 - 1}")


def is_number(value: object) -> bool:
    """Python's own or NumPy's, and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
