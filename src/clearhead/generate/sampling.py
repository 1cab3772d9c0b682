"""The generation options, declared once: name, default, limits and help text.

The command line and the server derive their options and fields from `OPTIONS`, and everything that takes an
option checks it here. `sampler.py` lists the order in which sampling applies them. This module does not
import torch, so that the command line can show its help quickly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Self

from clearhead.errors import UserError, guess


@dataclass(frozen=True)
class Option:
    """One option. Limits are inclusive except `above`; a value of None is allowed if it is the default."""

    name: str
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    integer: bool = False

    def check(self, value: object) -> None:
        """Raise UserError unless the value is a number within the limits."""
        if not (self.accepts(value) or (value is None and self.default is None)):
            raise UserError(f"{self.name} = {value!r}: expected {self.expected}")

    def accepts(self, value: Any) -> bool:
        return (
            (is_integer(value) if self.integer else is_number(value))
            and -math.inf < value < math.inf
            and (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
        )

    @property
    def expected(self) -> str:
        if self.maximum is not None:
            between = "" if self.minimum is None else "from "
            return f"{'an integer' if self.integer else 'a number'} {between}{self.limits}"
        of = "" if self.minimum is None else "of "
        return f"{'an integer' if self.integer else 'a finite number'} {of}{self.limits}"

    @property
    def limits(self) -> str:
        """Describe the limits as a phrase."""
        lower = f"above {self.above}" if self.above is not None else f"at least {self.minimum}"
        if self.maximum is None:
            return lower
        return (
            f"{lower} and at most {self.maximum}"
            if self.minimum is None
            else f"{self.minimum} to {self.maximum}"
        )


OPTIONS = {
    option.name: option
    for option in (
        Option("tokens", 200, "Generate at most this many tokens.", minimum=1, integer=True),
        Option("seconds", None, "Stop after this many seconds and return the text so far.", above=0),
        Option(
            "temperature",
            0.8,
            "Divide the logits by this number; 0 is greedy decoding, and values above 1 are more random.",
            minimum=0,
            maximum=100,
        ),
        Option("top_k", None, "Sample only from the k most probable tokens.", minimum=1, integer=True),
        Option(
            "top_p",
            None,
            "Sample only from the most probable tokens that together reach this probability.",
            above=0,
            maximum=1,
        ),
        Option(
            "min_p",
            None,
            "Sample only from tokens whose probability is at least this fraction of the highest.",
            minimum=0,
            maximum=1,
        ),
        Option(
            "repetition_penalty",
            1.0,
            "Above 1, lower the probability of tokens that occur in the prompt or the text so far.",
            minimum=0.01,  # dividing by a far smaller number would overflow
            maximum=100,
        ),
        Option(
            "presence_penalty",
            0.0,
            "Subtract this from the logit of each token that has already been generated.",
            minimum=-2,
            maximum=2,
        ),
        Option(
            "frequency_penalty",
            0.0,
            "Subtract this from a token's logit for each time it has already been generated.",
            minimum=-2,
            maximum=2,
        ),
        Option(
            "logit_bias",
            None,
            "Add a number to the logits of individual tokens; -100 excludes a token.",
            minimum=-100,  # for each number
            maximum=100,
        ),
        Option("regex", None, "Generate text that matches this regular expression from start to end."),
        Option("json_schema", None, "Generate JSON that matches this schema."),
        Option("shift", False, "Drop the older half of a full context: fast, but an approximation."),
        Option(
            "draft",
            None,
            "Generate the same text, often faster, by checking several proposed tokens at a time. Proposals come from "
            "the 5-grams of a text file or, with 'repeats', from repetitions of earlier tokens.",
        ),
        Option("seed", 0, "The same seed gives the same text.", minimum=0, maximum=2**32 - 1, integer=True),
        Option("stop", None, "End the text before this string."),
        Option(
            "log_probabilities",
            None,
            "Return the log-probability of each token and of this many alternatives.",
            minimum=0,
            maximum=20,
            integer=True,
        ),
        Option("samples", 1, "Generate this many texts.", minimum=1, maximum=10_000, integer=True),
        Option(
            "beams",
            None,
            "Search with this many beams instead of sampling.",
            minimum=1,
            maximum=256,
            integer=True,
        ),
        Option(
            "length_penalty",
            1.0,
            "With beams: divide the log-probability by the length to this power; values above 0 favor longer "
            "texts.",
            minimum=-10,
            maximum=10,
        ),
        Option("slots", 32, "Generate this many texts at once.", minimum=1, maximum=1024, integer=True),
        Option(
            "queue",
            256,
            "Let at most this many requests wait; reject the rest.",
            minimum=1,
            maximum=100_000,
            integer=True,
        ),
    )
}
SLOTS: int = OPTIONS["slots"].default
QUEUE: int = OPTIONS["queue"].default


@dataclass(frozen=True)
class Sampling:
    """How the next token is sampled."""

    temperature: float = OPTIONS["temperature"].default
    top_k: int | None = OPTIONS["top_k"].default
    top_p: float | None = OPTIONS["top_p"].default
    min_p: float | None = OPTIONS["min_p"].default
    repetition_penalty: float = OPTIONS["repetition_penalty"].default
    presence_penalty: float = OPTIONS["presence_penalty"].default
    frequency_penalty: float = OPTIONS["frequency_penalty"].default
    logit_bias: Mapping[int | str, float] | None = None  # by id, or by the text of one token
    regex: str | None = None
    json_schema: Mapping[str, Any] | None = None
    log_probabilities: int | None = OPTIONS["log_probabilities"].default

    def __post_init__(self) -> None:
        check_options(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            log_probabilities=self.log_probabilities,
        )
        if self.logit_bias is not None and not isinstance(self.logit_bias, Mapping):
            raise UserError(f"logit_bias = {self.logit_bias!r}: expected a dict that maps tokens to numbers")
        option = OPTIONS["logit_bias"]
        for token, bias in (self.logit_bias or {}).items():
            if not option.accepts(bias) and bias != -math.inf:
                raise UserError(f"`logit_bias` of {token!r} = {bias!r}: expected {option.expected}")
        if self.regex is not None and self.json_schema is not None:
            raise UserError("`regex` and `json_schema` are both given: expected only one")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Return the settings with these names; an unknown name raises an error."""
        check_names(options, cls.names())
        return cls(**options)

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @property
    def constrained(self) -> bool:
        return self.regex is not None or self.json_schema is not None


def check_options(**values: object) -> None:
    """Raise UserError if a value is outside the limits of the option of the same name."""
    for name, value in values.items():
        OPTIONS[name].check(value)


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"unknown setting {name!r}{guess(name, known)}")


def is_number(value: object) -> bool:
    """Whether the value is a real number from Python or NumPy, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
