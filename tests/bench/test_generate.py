"""The measurement of writing, in its short mode."""

import pytest

from bench.generate import SHORT, measure, measure_best, measure_file
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

pytestmark = pytest.mark.slow


def test_speed_is_told_beside_the_peer_where_there_is_one():
    figures = measure(2, 4, "cpu", short=True)
    assert figures["ours"] > 0
    assert ("transformers" in figures) == ("ratio" in figures)


def test_eight_bits_are_held_against_every_way_of_the_peer(tmp_path):
    pytest.importorskip("numba", reason="numba, which compiles it, is not installed")
    figures = measure_best(4, short=True)
    assert figures["ours"] > 0
    assert ("transformers bfloat16" in figures) == ("ratio" in figures)
    network = Transformer(preset("gpt2", **{**SHORT, "n_vocab": 2048}))
    LanguageModel(network, Tokenizer.train("byte", [])).export(tmp_path / "model.gguf")
    assert measure_file(str(tmp_path / "model.gguf"), 4, alone=True)["ours"] > 0
