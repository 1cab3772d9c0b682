"""The measurements of training in their short mode: their figures are there, and are those of real runs."""

import pytest

from bench.train import SHORT, measure_gpt2, measure_growth, measure_runs

pytestmark = pytest.mark.slow


def test_runs_tell_their_loss_and_their_time(story_file):
    figures = measure_runs(str(story_file), SHORT, seeds=1)
    run = figures["runs"][0]
    assert figures["mean_loss"] == run["loss"]
    assert 1 < run["loss"] < 6
    assert run["steps"] == SHORT["steps"]
    assert 0 < run["training"] < run["wall"]


def test_speed_is_told_beside_the_peer_where_there_is_one():
    figures = measure_gpt2(2, short=True)
    assert figures["tokens_a_second"] > 0
    assert ("transformers" in figures) == ("ratio" in figures)


def test_growing_texts_and_contexts_are_timed():
    figures = measure_growth(short=True)
    assert all(figures[name] > 0 for name in ("text_1000000", "text_10000000", "context_64", "context_128"))
