"""Tests for the benchmark of extended runs in short mode: a run of 20 steps, extended, against one of 40."""

import pytest

from tests.bench.process import run_short


@pytest.mark.slow
def test_short_mode_prints_one_line():
    figures = run_short("extend")
    assert (figures["steps"], figures["steps_done"]) == (20, [40, 40])
    assert figures["parameters"][0] == figures["parameters"][1]
    [first], [extended], [single] = figures["first"], figures["extended"], figures["single"]
    assert extended < first
    assert figures["difference"] == [round(extended - single, 4)] == [figures["mean_difference"]]
