"""Tests for the loading benchmark in short mode: Clearhead alone, with a small model."""

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from tests.bench.process import run_short


@pytest.mark.slow
def test_short_mode_reports_time_and_peak_memory(tmp_path):
    torch.manual_seed(0)
    config = preset("modern", n_vocab=257, n_context=64, n_block=1, n_head=1, d_model=32)
    LanguageModel(Transformer(config), Tokenizer.train("byte", [])).export(tmp_path / "m.gguf", "gguf")
    measured = run_short("load", tmp_path / "m.gguf")
    assert measured["seconds"] > 0
    assert measured["peak_mb"] > 10
