"""Tests for the grading benchmark in short mode."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest

from clearhead.classroom.sandbox import landlock_version


@pytest.mark.slow
@pytest.mark.skipif(landlock_version() == 0, reason="without Landlock, a submission can import the solutions")
def test_every_submission_gets_the_expected_grades():
    done = subprocess.run(
        [sys.executable, "-m", "bench.classroom", "--short"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = loads(done.stdout)
    assert measured["differ"] == []
    assert measured["as_expected"] == measured["grades"] == 12 * measured["submissions"] > 0
    assert len(measured["kinds"]) == 6
