"""Tests for the time-budget benchmark in short mode: one run of a few seconds."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest


@pytest.mark.slow
def test_short_mode_prints_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "bench.minutes", "--short", "--device", "cpu"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    figures = loads(line)
    assert (figures["requested_seconds"], figures["bytes"], figures["device"]) == (6.0, 30_000, "cpu")
    assert figures["overrun"] == pytest.approx(figures["seconds"] / 6 - 1, abs=0.002)
    assert sum(figures["phases"].values()) == pytest.approx(figures["seconds"], abs=1)
    assert figures["process_seconds"] > figures["seconds"]
    assert figures["steps_planned"][-1] == figures["steps"]
