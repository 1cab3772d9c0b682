"""Tests for the benchmark of a live page's number types."""

import pytest

from bench.live_weights import main, published
from clearhead.language_model import load


@pytest.fixture(scope="module")
def lines():
    return {
        line["numbers"]: line
        for line in main("stories", "Tom had a dog. The dog was happy, and Tom was happy.")
    }


def test_float32_loses_nothing_and_smaller_types_little(lines):
    assert lines["float32"]["ratio"] == 1
    assert lines["float16"]["ratio"] == pytest.approx(1, abs=1e-3)
    assert lines["int8"]["ratio"] == pytest.approx(1, abs=0.05)
    assert lines["float32"]["weights_mb"] > 1.9 * lines["float16"]["weights_mb"]


def test_int8_weights_are_rounded():
    model = load("stories", "cpu")
    rounded, size = published(model, "int8")
    before, after = model.weight("block.0.W_1"), rounded.weight("block.0.W_1")
    assert 0 < (before - after).abs().max() < before.abs().max() / 127
    assert size < sum(parameter.nbytes for parameter in model.network.parameters()) / 3
