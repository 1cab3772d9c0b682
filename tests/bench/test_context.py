"""Tests for the full-context benchmark in short mode."""

import pytest

from bench.context import main


@pytest.mark.clock
def test_short_mode_measures_both_methods():
    measured = main(short=True)
    assert measured["shift_speedup_64"] > 1
    assert 0 < measured["recompute_loss"] < 10
    assert 0 < measured["shift_loss"] < 10
