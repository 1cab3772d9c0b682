"""Tests for the demo benchmark with few steps: few sentences parse, but everything runs."""

import importlib.util
from pathlib import Path

import pytest

from clearhead.runs.demo import demo_request, demo_texts
from clearhead.runs.run import Run


def load_bench(name: str):
    path = Path(__file__).parents[2] / "bench" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_short_run_learns_the_shortest_sentences(tmp_path):
    bench = load_bench("stories")
    texts = demo_texts(400)
    training = {text for document in texts for text in document.read()}
    run = Run(texts, demo_request(minutes=None, steps=150), cache=tmp_path)
    result = bench.measure(run, training)
    assert result["sentences"] == 200
    assert result["copies"] == 0
    assert result["validation_loss"] < 1.6
    # An untrained network generates no sentence that parses.
    assert 0.05 < result["parsed"] <= 1
    assert result["ratio"] == round(result["parsed"] / 0.95, 3)
