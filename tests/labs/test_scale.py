"""Dividing by √d_k keeps the attention weights independent of d_k."""

import pytest

import clearhead


def test_without_scaling_one_token_takes_all_the_attention():
    result = clearhead.lab("scale", seed=1)
    undivided, divided = result.part("largest weight").lines.values()
    assert undivided[-1] > 0.9
    assert undivided == sorted(undivided)
    assert max(divided) - min(divided) < 0.08  # 0.02 to 0.05 across seeds
    assert result.findings["spread of the scores / √d"] == pytest.approx(1, abs=0.1)
    slopes = result.part("slope").lines
    assert slopes["undivided"][-1] < 0.1 * slopes["divided by √d_k"][-1]


def test_seed_determines_the_result():
    assert clearhead.lab("scale", seed=3) == clearhead.lab("scale", seed=3)
    assert clearhead.lab("scale", seed=3) != clearhead.lab("scale", seed=4)
