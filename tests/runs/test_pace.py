"""The pace: what fits into a time budget, and how long recent steps take, not counting validations."""

import pytest

from clearhead.runs.pace import Pace, Schedule


def test_schedule_fits_the_time_budget():
    schedule = Schedule.fit(
        100, seconds_per_step=0.5, seconds_per_token_read=0.001, n_tokens=1000, context=64
    )
    assert (schedule.validations, schedule.validated, schedule.steps_per_validation) == (5, 1000, 2.0)
    assert schedule.steps * 0.5 + schedule.validations * 1.0 == pytest.approx(100, abs=0.5)
    often = Schedule.fit(100, 0.5, 1e-6, 1000, 64)
    assert (often.validations, often.validated) == (10, 1000)


def test_slow_validation_uses_less_text():
    schedule = Schedule.fit(100, 0.5, seconds_per_token_read=0.1, n_tokens=1000, context=64)
    assert (schedule.validations, schedule.validated) == (1, 100)
    assert schedule.steps == 180
    assert Schedule.fit(1, 0.5, 0.1, 1000, 64).validated == 64


def test_no_time_left_still_gives_one_step():
    assert Schedule.fit(-5, 0.5, 0.1, 1000, 64).steps == 1


def test_pace_is_the_mean_since_the_last_call():
    pace = Pace(0.0)
    assert pace.seconds_per_step() == 0.0
    for seconds in (1.0, 2.0, 3.0):
        pace.note(seconds)
    assert pace.seconds_per_step() == 2.0
    pace.note(8.0)
    assert pace.seconds_per_step() == 8.0
    assert pace.seconds_per_step() == 8.0, "nothing was added since"


def test_validation_time_is_measured_in_steps():
    pace = Pace(4.0)
    assert (pace.validation, pace.around_validation) == (4.0, 4.0)
    pace.note(2.0)
    pace.note(9.0, 5.0)
    assert pace.seconds_per_step() == 2.0
    assert (pace.validation, pace.around_validation) == (2.5, 3.5)
