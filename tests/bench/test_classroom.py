"""Tests for the grading benchmark in short mode."""

import pytest

from clearhead.classroom.sandbox import landlock_version
from tests.bench.process import run_short


@pytest.mark.slow
@pytest.mark.skipif(landlock_version() == 0, reason="without Landlock, a submission can import the solutions")
def test_every_submission_gets_the_expected_grades():
    measured = run_short("classroom", "--timeout", 60)
    assert measured["differ"] == []
    assert measured["as_expected"] == measured["grades"] == 12 * measured["submissions"] > 0
    assert len(measured["kinds"]) == 6
