"""The pace of a run by the clock: how many steps fit into a time, foreseen and then as they really go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

VALIDATION_SHARE = 0.05  # of the time, unless one validation takes more
LARGEST_VALIDATION_SHARE = 0.1  # for one; where the whole validation text takes longer, less of it is read
MOST_VALIDATIONS = 10


@dataclass(frozen=True)
class Schedule:
    """Steps and validations that fit into a time."""

    steps: int
    validations: int
    validated: int  # tokens of the validation text that are read each time
    steps_a_validation: float  # in the time of so many steps

    @classmethod
    def fit(
        cls, seconds: float, seconds_a_step: float, seconds_a_token_read: float, n_tokens: int, context: int
    ) -> Schedule:
        """Of a validation text of `n_tokens`, at least a window of `context` is read."""
        most = int(LARGEST_VALIDATION_SHARE * seconds / seconds_a_token_read)
        validated = min(n_tokens, max(context, most))
        each = validated * seconds_a_token_read
        validations = int(np.clip(VALIDATION_SHARE * seconds / each, 1, MOST_VALIDATIONS))
        steps = max(1, round((seconds - validations * each) / seconds_a_step))
        return cls(steps, validations, validated, each / seconds_a_step)

    def to_plan(self) -> dict[str, Any]:
        """What a plan says of validation; of steps its recipe does."""
        return {name: value for name, value in vars(self).items() if name != "steps"}


class Pace:
    """Of late. All that the caller does after a step or a validation, such as saving, is counted with it.

    Validations are counted in the time of so many steps: a machine that slows down slows both.
    """

    def __init__(self, steps_a_validation: float) -> None:
        self.validation = steps_a_validation  # alone, the last time; as foreseen before the first
        self.around_validation = steps_a_validation  # with what the caller does after it
        self._seconds, self._steps = 0.0, 0  # since it was last asked
        self._a_step = 0.0

    def note(self, seconds: float, validation: float = 0.0) -> None:
        """A step took so many seconds, so many of them in a validation after it, if there was one."""
        if not validation:
            self._seconds, self._steps = self._seconds + seconds, self._steps + 1
            return
        a_step = self._mean() or seconds - validation
        self.validation = validation / a_step
        self.around_validation = max(self.validation, seconds / a_step - 1)

    def seconds_a_step(self) -> float:
        """The mean since this was last asked; 0 before there was one."""
        self._a_step = self._mean()
        self._seconds, self._steps = 0.0, 0
        return self._a_step

    def _mean(self) -> float:
        return self._seconds / self._steps if self._steps else self._a_step
