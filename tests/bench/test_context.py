"""The measurement of a full context, in its short mode: a few words."""

import pytest

from bench.context import main


@pytest.mark.clock
def test_short_mode_measures_both_ways():
    measured = main(short=True)
    assert measured["shift_speedup_64"] > 1
    assert 0 < measured["again_loss"] < 10
    assert 0 < measured["shift_loss"] < 10
