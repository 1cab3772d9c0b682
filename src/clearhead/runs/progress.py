"""The progress of a run, recorded after each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clearhead.training.trainer import StepRecord

MOST_AVERAGED = 20  # values


@dataclass(frozen=True)
class Progress:
    """The state of a run after a step."""

    record: StepRecord
    steps: int  # total
    loss: float  # smoothed
    seconds_per_step: float  # smoothed
    seconds: float  # since the start of the run
    validation: float | None  # loss over the validation text, if measured at this step
    sample: str | None = None  # sample generated at this step

    @property
    def tokens_per_second(self) -> float:
        return self.record.tokens / self.record.step / self.seconds_per_step

    def metrics(self) -> dict[str, int | float | None]:
        """The metrics of the step, identical in identical runs. None stands for non-finite values."""
        record = self.record
        numbers: dict[str, int | float] = {
            "loss": record.loss,
            "gradient_norm": record.gradient_norm,
            "learning_rate": record.learning_rate,
            "tokens": record.tokens,
        }
        if self.validation is not None:
            numbers["validation"] = self.validation
        finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        return {"step": record.step, **finite}


class ExponentialAverage:
    """An exponential average over about the last quarter of the values, but at most the last `MOST_AVERAGED`.

    A fixed number would keep the first losses, the highest, in the average of a short run.
    """

    def __init__(self) -> None:
        self.mean, self.count = 0.0, 0

    def __call__(self, number: float) -> float:
        self.count += 1
        self.mean += (number - self.mean) / min(max(1, self.count / 4), MOST_AVERAGED)
        return self.mean
