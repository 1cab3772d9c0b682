"""Tests for the killed-run benchmark in short mode."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_killed_run_resumes_identically():
    done = subprocess.run(
        [sys.executable, "-m", "bench.faults", "--short"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = loads(done.stdout)
    assert measured["resumed_equal"] == measured["runs"] > 0
    assert measured["max_lost_steps"] <= measured["checkpoint_every"]
