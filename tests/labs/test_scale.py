"""What √d_k keeps as it is."""

import pytest

import clearhead


def test_undivided_one_word_takes_all():
    result = clearhead.lab("scale", seed=1)
    undivided, divided = result.part("largest weight").lines.values()
    assert undivided[-1] > 0.9
    assert undivided == sorted(undivided)
    assert max(divided) - min(divided) < 0.08  # over seeds it lies between 0.02 and 0.05
    assert result.found["spread of the scores / √d"] == pytest.approx(1, abs=0.1)
    slopes = result.part("slope").lines
    assert slopes["undivided"][-1] < 0.1 * slopes["divided by √d_k"][-1]


def test_seeds_are_kept():
    assert clearhead.lab("scale", seed=3) == clearhead.lab("scale", seed=3)
    assert clearhead.lab("scale", seed=3) != clearhead.lab("scale", seed=4)
