"""The power-loss benchmark in short mode."""

import pytest

from tests.bench.process import run_short


@pytest.mark.slow
def test_runs_whose_power_is_cut_lose_nothing_saved_and_resume_identically():
    measured = run_short("power_loss")
    assert measured["failed"] == []
    assert measured["resumed_equal"] == measured["cuts"] > 0
