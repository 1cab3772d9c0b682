"""Tests for the time-budget benchmark in short mode: one run of a few seconds."""

import pytest

from tests.bench.process import run_short


@pytest.mark.clock
def test_short_mode_prints_one_line():
    figures = run_short("minutes", "--device", "cpu")
    assert (figures["requested_seconds"], figures["bytes"], figures["device"]) == (6.0, 30_000, "cpu")
    assert figures["overrun"] == pytest.approx(figures["seconds"] / 6 - 1, abs=0.002)
    assert sum(figures["phases"].values()) == pytest.approx(figures["seconds"], abs=1)
    assert figures["process_seconds"] > figures["seconds"]
    assert figures["steps_planned"][-1] == figures["steps"]
