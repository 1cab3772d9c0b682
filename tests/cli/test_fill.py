"""`clearhead fill`."""

import io
import json
import shutil
import sys

import pytest

from clearhead.language_model import load

SMALL = ("--steps", 5, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 32, "--vocab", 300)
TEXT = "Anna ___ a kite, and <|mask|> was red."


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Where the first test puts a copy of the trained model for the others."""
    return tmp_path_factory.mktemp("finished") / "filler"


@pytest.fixture
def filler(clearhead, story_file, finished):
    if finished.exists():
        return shutil.copytree(finished, "filler")
    result = clearhead("train", story_file, "--out", "filler", "--bidirectional", "--device", "cpu", *SMALL)
    assert result.code == 0, result.err
    assert 'try: clearhead fill filler "' in result.err
    shutil.copytree("filler", finished)
    return "filler"


def test_predictions_and_probabilities_are_printed_for_each_blank(filler, clearhead):
    result = clearhead("fill", filler, TEXT, "--count", 3)
    assert (result.code, result.err) == (0, "")
    expected, width = [], max(len(token) for tokens in load(filler).fill(TEXT, 3) for token, _ in tokens)
    for i, tokens in enumerate(load(filler).fill(TEXT, 3)):
        expected += [f"blank {i}", *(f"  {token:<{width}}  {p:.4f}" for token, p in tokens)]
    assert len(expected) == 8
    assert result.out.splitlines() == expected


def test_json_output_matches_fill(filler, clearhead, monkeypatch):
    document = json.loads(clearhead("fill", filler, TEXT, "--json").out)
    assert document["text"] == TEXT
    found = [[(each["token"], each["probability"]) for each in tokens] for tokens in document["blanks"]]
    assert found == load(filler).fill(TEXT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert json.loads(clearhead("fill", filler, "-", "--json").out) == document


def test_invalid_input_is_rejected(filler, refused, model_folder):
    refused("fill", filler, "Anna had a kite.", words=["has no blank", "write ___"])
    refused("fill", filler, TEXT, "--count", 0, words=["--count 0:"])
    refused("fill", filler, "___ " * 40, words=["exceed the context of 32"])
    refused("fill", model_folder, TEXT, words=["is causal"])
    refused("fill", "nowhere", TEXT, words=["no such folder or file: nowhere"])
    refused("fill", filler, words=["'TEXT'"])
