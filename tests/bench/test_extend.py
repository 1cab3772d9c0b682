"""Tests for the benchmark of extended runs in short mode: a run of 20 steps, extended, against one of 40."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest


@pytest.mark.slow
def test_short_mode_prints_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "bench.extend", "--short"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    figures = loads(line)
    assert (figures["steps"], figures["steps_done"]) == (20, [40, 40])
    assert figures["parameters"][0] == figures["parameters"][1]
    [first], [extended], [single] = figures["first"], figures["extended"], figures["single"]
    assert extended < first
    assert figures["difference"] == [round(extended - single, 4)] == [figures["mean_difference"]]
