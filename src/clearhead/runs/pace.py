"""The pace of a timed run: how many steps fit into the time, estimated and then measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

VALIDATION_SHARE = 0.05  # of the time, unless one validation takes more
LARGEST_VALIDATION_SHARE = (
    0.1  # for one validation; if the whole validation text takes longer, less of it is used
)
MOST_VALIDATIONS = 10


@dataclass(frozen=True)
class Schedule:
    """Steps and validations that fit into a given time."""

    steps: int
    validations: int
    validated: int  # tokens of the validation text used each time
    steps_per_validation: float  # one validation takes as long as this many steps

    @classmethod
    def fit(
        cls,
        seconds: float,
        seconds_per_step: float,
        seconds_per_token_read: float,
        n_tokens: int,
        context: int,
    ) -> Schedule:
        """Fit steps and validations into `seconds`.

        Each validation uses at least one window of `context` tokens, and at most the `n_tokens` of the validation text.
        """
        most = int(LARGEST_VALIDATION_SHARE * seconds / seconds_per_token_read)
        validated = min(n_tokens, max(context, most))
        each = validated * seconds_per_token_read
        validations = int(np.clip(VALIDATION_SHARE * seconds / each, 1, MOST_VALIDATIONS))
        steps = max(1, round((seconds - validations * each) / seconds_per_step))
        return cls(steps, validations, validated, each / seconds_per_step)

    def to_plan(self) -> dict[str, Any]:
        """The fields of a plan that concern validation; steps are in the recipe."""
        return {name: value for name, value in vars(self).items() if name != "steps"}


class Pace:
    """Recent speed, including the caller's work after a step or validation, such as saving.

    Validations are measured in steps: a machine that slows down slows both.
    """

    def __init__(self, steps_per_validation: float) -> None:
        self.validation = steps_per_validation  # of the last validation alone; estimated before the first
        self.around_validation = steps_per_validation  # including the caller's work
        self._seconds, self._steps = 0.0, 0  # since the last call to `seconds_per_step`
        self._a_step = 0.0

    def note(self, seconds: float, validation: float = 0.0) -> None:
        """Record a step that took `seconds`, of which `validation` were spent on validation."""
        if not validation:
            self._seconds, self._steps = self._seconds + seconds, self._steps + 1
            return
        a_step = self._mean() or seconds - validation
        self.validation = validation / a_step
        self.around_validation = max(self.validation, seconds / a_step - 1)

    def seconds_per_step(self) -> float:
        """The mean since the last call, or the previous mean if there has been no step since; 0 at first."""
        self._a_step = self._mean()
        self._seconds, self._steps = 0.0, 0
        return self._a_step

    def _mean(self) -> float:
        return self._seconds / self._steps if self._steps else self._a_step
