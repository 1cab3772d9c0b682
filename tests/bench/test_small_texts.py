"""The benchmark of small texts, with few steps."""

import pytest

from bench.small_texts import measure

SETTINGS = {"blocks": 1, "heads": 1, "width": 16, "context": 16, "batch": 2, "steps": 3, "device": "cpu"}


@pytest.mark.slow
@pytest.mark.parametrize("teachers", [0, 2])
def test_loss_of_every_held_out_token_is_reported(teachers, story_file):
    figures = measure(str(story_file), 1, {**SETTINGS, "teachers": teachers}, range(1))
    run = figures["runs"][0]
    assert figures["loss"] == run["loss"] == pytest.approx(run["validation_loss"], abs=1e-3)
    assert run["steps"] == 3
    assert len(run["teachers"]) == teachers
    assert 1 < run["bits_per_byte"] < 10
