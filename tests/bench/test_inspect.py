"""Tests for the inspection benchmark in short mode: a small model and no peers."""

from bench.inspect import main


def test_short_mode_reports_ratios():
    figures = main(short=True)["16"]
    assert figures["inspect_over_forward"] > 0
    assert figures["head_over_forward"] > 0
