"""Tests of the inspection benchmark in its short mode: no peers, a small model."""

from bench.inspect import main


def test_short_mode_gives_ratios():
    figures = main(short=True)["16"]
    assert figures["inspect_over_forward"] > 0
    assert figures["head_over_forward"] > 0
