"""The GPU measurements in short mode, without a GPU."""

import json

import pytest
import torch

from bench.gpu import SECTIONS
from tests.bench.process import run_python

pytestmark = pytest.mark.slow


def test_every_section_runs_and_names_its_figures(tmp_path):
    (tmp_path / "text.txt").write_text("To be, or not to be, that is the question.\n" * 200)
    printed = run_python("-m", "bench.gpu", "--short", "--device", "cpu", "--text", tmp_path / "text.txt")
    first, *lines = [json.loads(line) for line in printed.splitlines()]
    assert first["no kernels because"] == "the model is not on a CUDA GPU"
    assert not [line for line in lines if "error" in line]
    assert [line["section"] for line in lines if "seconds" in line] == list(SECTIONS)
    equal = [line for line in lines if line["section"] == "equal" and "of" in line]
    assert all(line["equal"] == line["of"] > 0 for line in equal)
    [served] = [line for line in lines if line.get("model") == "gpt2" and "streams" in line]
    assert served["second tokens_per_second"] > 0
    assert served["first late_first_token"] > 0
    assert torch.__version__ == first["torch"]
