"""Tests for the loading benchmark in short mode: Clearhead alone, with a small model."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer


@pytest.mark.slow
def test_short_mode_reports_time_and_peak_memory(tmp_path):
    torch.manual_seed(0)
    config = preset("modern", n_vocab=257, n_context=64, n_block=1, n_head=1, d_model=32)
    LanguageModel(Transformer(config), Tokenizer.train("byte", [])).export(tmp_path / "m.gguf", "gguf")
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", str(tmp_path / "m.gguf"), "--short"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = loads(done.stdout)
    assert 0 < measured["seconds"] < 60
    assert measured["peak_mb"] > 10
