"""Tests for the training benchmarks in short mode."""

import pytest

from bench.train import SHORT, SMALL_TEXTS, measure_gpt2, measure_growth, measure_runs, measure_small_text

pytestmark = pytest.mark.slow


def test_runs_report_loss_and_time(story_file):
    figures = measure_runs(str(story_file), SHORT, seeds=1)
    run = figures["runs"][0]
    assert figures["mean_loss"] == run["loss"]
    assert 1 < run["loss"] < 6
    assert run["steps"] == SHORT["steps"]
    assert 0 < run["training_seconds"] < run["wall_seconds"]


def test_gpt2_is_compared_with_transformers_if_installed():
    figures = measure_gpt2(2, short=True)
    assert figures["tokens_per_second"] > 0
    assert ("transformers" in figures) == ("ratio" in figures)


def test_growth_is_measured_over_texts_and_contexts():
    figures = measure_growth(short=True)
    assert all(figures[name] > 0 for name in ("text_1000000", "text_10000000", "context_64", "context_128"))


@pytest.mark.parametrize("benchmark", ["plays-2", "novel-cores"])
def test_small_texts_are_compared_with_one_model_and_with_nanogpt(benchmark, story_file):
    figures = measure_small_text(benchmark, str(story_file), 3, short=True)
    assert figures["minutes"] == SMALL_TEXTS[benchmark]["minutes"]
    assert len(figures["runs"]) == 1
    assert [
        len(each["runs"][0]["teachers"]) for each in (figures, figures["single"], figures["classic"])
    ] == [2, 0, 0]
    for other in (figures["single"], figures["classic"]):
        difference = other["bits_per_byte"] - figures["bits_per_byte"]
        assert other["gain"] == pytest.approx(0.6931 * difference, abs=1e-3)
