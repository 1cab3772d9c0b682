"""Tests for the recipe benchmark in short mode: a few steps of each recipe."""

import pytest

from bench.recipes import compare
from clearhead.text.corpus import Document


@pytest.mark.slow
def test_fast_and_classic_recipes_are_compared(story_text, tmp_path, work_clock):
    figures = compare([Document.of("stories", story_text)], 2 / 60, 1, None, tmp_path)
    assert len(figures["fast"]["losses"]) == len(figures["classic"]["losses"]) == 1
    assert figures["improvement"] == round(figures["classic"]["mean"] - figures["fast"]["mean"], 4)
    assert figures["classic"]["rate"] == 0.001
