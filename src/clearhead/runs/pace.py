"""The pace of a run by the clock: what steps and validations take of late."""

from __future__ import annotations


class Pace:
    """All that the caller does after a step or a validation, such as saving, is counted with it."""

    def __init__(self, seconds_a_validation: float) -> None:
        self.seconds_a_validation = seconds_a_validation  # alone, the last time; foreseen, before the first
        self.around_validation = seconds_a_validation  # with what the caller does after it
        self._seconds, self._steps = 0.0, 0
        self._a_step = 0.0

    def note(self, seconds: float, validated: bool) -> None:
        """A step was taken, and perhaps a validation after it."""
        if validated:
            self.around_validation = max(self.seconds_a_validation, seconds - self._mean())
        else:
            self._seconds, self._steps = self._seconds + seconds, self._steps + 1

    def take(self) -> float:
        """Seconds a step, the mean since this was last asked; 0 before there was one."""
        self._a_step = self._mean()
        self._seconds, self._steps = 0.0, 0
        return self._a_step

    def _mean(self) -> float:
        return self._seconds / self._steps if self._steps else self._a_step
