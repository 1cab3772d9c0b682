"""Follow a run's metrics as they are written: each poll reads only the new lines."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.runs.progress import ExponentialAverage
from clearhead.runs.run_metrics import LONGEST_LINE, METRICS, open_metrics, read_lines, read_record

RECENT = 10.0  # seconds over which the speed is measured
PAUSE = 4  # a gap between writes this many times the longest recent one counts as a pause
STILL = 30.0  # seconds without a new line after which no speed is reported


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """One line of the metrics. None stands for values that are not finite or not measured."""

    step: int
    loss: float | None
    smoothed: float | None  # the loss, averaged over the last steps
    validation: float | None
    learning_rate: float | None  # of the matrices
    gradient_norm: float | None
    tokens: int
    sample: str | None


class Follower:
    """The steps of one run so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self._begin()

    def _begin(self) -> None:
        self.steps: list[StepMetrics] = []
        self._smooth = ExponentialAverage()
        self._offset, self._last = 0, b""  # bytes read so far, and the last line
        self._grew: deque[tuple[float, int]] = (
            deque()
        )  # times at which the file grew, and the tokens processed by then

    def look(self) -> None:
        """Read new lines, or the whole file again if the metrics were truncated when the run was resumed."""
        try:
            with open_metrics(self.path) as file:
                file.seek(self._offset - len(self._last))
                if file.read(len(self._last)) != self._last:
                    self._begin()
                    file.seek(0)
                before = self._offset
                for line in read_lines(file):
                    if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                        break  # it is still being written
                    self._add(line)
                    self._offset, self._last = self._offset + len(line), line
                written = os.fstat(file.fileno()).st_mtime
        except (UserError, OSError):
            self._begin()
            return
        if self._offset > before and self.steps:
            self._note(written)
        while len(self._grew) > 2 and self._grew[-1][0] - self._grew[1][0] > RECENT:
            self._grew.popleft()

    def _note(self, written: float) -> None:
        """Record when the file grew. A long pause, as before a resume, restarts the measurement of speed."""
        times = [when for when, _ in self._grew]
        usual = max((b - a for a, b in pairwise(times)), default=0.0)
        if len(times) > 1 and written - times[-1] > PAUSE * usual + 1:
            self._grew.clear()
        self._grew.append((written, self.steps[-1].tokens))

    @property
    def tokens_per_second(self) -> float | None:
        """The speed over the last few seconds; None if the file has not grown recently."""
        if len(self._grew) < 2 or time.time() - self._grew[-1][0] > STILL:
            return None
        (began, before), (ended, after) = self._grew[0], self._grew[-1]
        return (after - before) / (ended - began) if ended > began and after > before else None

    def after(self, step: int, most: int) -> list[StepMetrics]:
        """The steps after this one; if more than `most`, an even selection plus all steps with a validation."""
        # If the run returned to an earlier step, steps occur twice: start after the last occurrence of `step`.
        first = len(self.steps)
        while first > 0 and self.steps[first - 1].step > step:
            first -= 1
        found = self.steps[first:]
        if len(found) <= most:
            return found
        evenly = {round(place) for place in np.linspace(0, len(found) - 1, most).tolist()}
        return [each for i, each in enumerate(found) if i in evenly or each.validation is not None]

    def _add(self, line: bytes) -> None:
        record = read_record(line)
        if record is None:
            return
        loss, sample, tokens = _number(record.get("loss")), record.get("sample"), record.get("tokens")
        self.steps.append(
            StepMetrics(
                record["step"],
                loss,
                None if loss is None else self._smooth(loss),
                _number(record.get("validation")),
                _number(record.get("learning_rate")),
                _number(record.get("gradient_norm")),
                tokens if type(tokens) is int else 0,
                sample if isinstance(sample, str) else None,
            )
        )


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and math.isfinite(value) else None
