"""Tests for the word-vector benchmark on a few stories, with gensim only if it is installed."""

import importlib.util
import warnings

import pytest

pytest.importorskip("numba", reason="numba, which compiles word-vector training, is not installed")

from bench.words import measure
from clearhead.classics.skip_gram import Settings
from clearhead.text.corpus import Document


@pytest.mark.slow
def test_benchmark_runs_without_gensim(story_text, monkeypatch):
    find_spec = importlib.util.find_spec
    hidden = lambda name, *more: None if name == "gensim" else find_spec(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    result = measure([Document.of("stories", story_text)], [Settings(width=10, epochs=1, workers=1)])
    assert len(result["seconds"]) == 1
    assert "ratio" not in result


def test_results_are_compared_with_gensim(story_text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("gensim", reason="gensim is not installed: pip install gensim")
        # Add words from a few WordSim-353 pairs: the stories alone contain too few of them.
        text = story_text + "\n\n" + "the king and queen ate bread and butter in a car or a train " * 20
        settings = [Settings(width=10, epochs=1, workers=1, seed=seed) for seed in (1, 2)]
        result = measure([Document.of("stories", text)], settings)
    for name in ("seconds", "gensim_seconds", "wordsim353", "gensim_wordsim353"):
        assert len(result[name]) == 2
    assert all(-1 <= score <= 1 for score in result["wordsim353"] + result["gensim_wordsim353"])
    assert min(result["ratio"], result["cpu_ratio"]) > 0
