"""Tests for the generation benchmark in short mode."""

from itertools import islice

import pytest

from bench.generate import SHORT, measure, measure_best, measure_drafts, measure_file
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer

pytestmark = pytest.mark.slow


def test_gpt2_is_compared_with_transformers_if_installed():
    figures = measure(2, 4, "cpu", short=True)
    assert figures["clearhead"] > 0
    assert ("transformers" in figures) == ("ratio" in figures)


def test_int8_is_compared_with_every_transformers_mode(tmp_path):
    pytest.importorskip("numba", reason="numba is not installed: pip install '.[numba]'")
    figures = measure_best(4, short=True)
    assert figures["clearhead"] > 0
    assert ("transformers bfloat16" in figures) == ("ratio" in figures)
    network = Transformer(preset("gpt2", **{**SHORT, "n_vocab": 2048}))
    LanguageModel(network, Tokenizer.train("byte", [])).export(tmp_path / "model.gguf")
    assert measure_file(str(tmp_path / "model.gguf"), 4, no_peer=True)["clearhead"] > 0


def test_drafts_are_compared_with_plain_decoding(tmp_path):
    text = "\n".join(each.text for each in islice(stories(), 50))
    (tmp_path / "stories.txt").write_text(text)
    figures = measure_drafts("stories", str(tmp_path / "stories.txt"), 12, 0.8, "cpu")
    assert figures["plain"] > 0
    assert 0 < figures["drafted by 5-grams"] < 1
