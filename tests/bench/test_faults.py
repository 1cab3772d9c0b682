"""Tests for the killed-run benchmark in short mode."""

import pytest

from tests.bench.process import run_short


@pytest.mark.slow
def test_every_killed_run_resumes_identically():
    measured = run_short("faults")
    assert measured["resumed_equal"] == measured["runs"] > 0
    assert measured["max_lost_steps"] <= measured["checkpoint_every"]
