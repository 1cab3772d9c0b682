"""Tests for the saved-page benchmark with a small model."""

import json
import sys

import pytest

from bench.saved_page import main
from clearhead.page.assets import has_bundles
from tests.serving import make_model


def test_page_sizes_are_within_the_limit(tmp_path, monkeypatch, capsys):
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    make_model().save(tmp_path / "model")
    command = ["bench.saved_page", str(tmp_path / "model"), "--tokens", "64", "--head", "0.1"]
    monkeypatch.setattr(sys, "argv", command)
    main()
    figures = json.loads(capsys.readouterr().out)
    assert figures["tokens"] == 64
    sizes = [figures[f"{name}_bytes"] for name in ("head", "head_flow", "head_flow_lens")]
    assert 0 < sizes[0] < sizes[1] < sizes[2] < figures["limit_bytes"]
    assert figures["within_limit"]
