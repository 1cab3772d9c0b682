"""Tests for the benchmark of lessons in short mode, with a small model."""

import pytest

from tests.bench.process import run_short


@pytest.mark.slow
def test_short_mode_reports_ratios():
    figures = run_short("learn")
    assert figures["seconds_over_step"] > 0
    assert figures["step_ms"] > 0
    assert figures["lesson_mb"] >= 0
