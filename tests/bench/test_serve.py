"""Tests for the serving benchmark in short mode: a small random model, few requests."""

from bench.serve import main


def test_short_mode_reports_ratios():
    figures = main(None, short=True)["small"]
    assert figures["1"]["speedup"] > 0
    assert figures["2"]["tokens_per_second"] > 0
    assert figures["max_wait_ratio"] > 0
