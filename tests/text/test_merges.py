"""vocab.json and merges.txt, in place of tokenizer.json, give the ids of transformers' GPT-2 tokenizer."""

import json

import pytest
import transformers

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

TEXTS = ["the chicken didn't cross  the road\n\n12 é 🐔", " the<|endoftext|>", ""]


@pytest.fixture(scope="module")
def trained():
    return Tokenizer.train("bpe", ["the chicken didn't cross the road because it was too tired\n"] * 9, 300)


@pytest.fixture
def folder(trained, tmp_path):
    model = json.loads(trained.to_json())["model"]
    vocabulary = {**model["vocab"], "<|endoftext|>": trained.end_id}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    lines = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_ids_are_those_of_tokenizer_json_and_of_transformers(trained, folder):
    found = Tokenizer.load(folder)
    theirs = transformers.GPT2Tokenizer.from_pretrained(folder)
    assert found.end_id == trained.find("<|endoftext|>")
    assert found.kind == "bpe"
    for text in TEXTS:
        assert found.encode(text) == trained.encode(text)
        assert found.decode(found.encode(text)) == text
        if "<|" not in text:  # which transformers reads as the special token
            assert found.encode(text) == theirs.encode(text)


def test_start_token_and_end_token_come_from_the_settings(folder):
    """As in OPT's folders."""
    settings = {"bos_token": {"content": "the"}, "eos_token": "the", "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    found = Tokenizer.load(folder)
    assert found.start_ids == [found.end_id]
    found.save(folder / "saved", 8)
    assert Tokenizer.load(folder / "saved").start_ids == found.start_ids


def test_very_many_merges_are_rejected(folder):
    (folder / "merges.txt").write_text("t h\n" * 100_000)
    with pytest.raises(UserError, match=r"100000 lines, but .* tokens"):
        Tokenizer.load(folder)
    (folder / "merges.txt").write_text("t h\n" * 3_000_000)
    with pytest.raises(UserError, match="12000000 bytes, expected at most"):
        Tokenizer.load(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", "[]"),
        ("vocab.json", '{"a": -1}'),
        ("vocab.json", '{"a": "b"}'),
        ("vocab.json", "{}"),
        ("merges.txt", "q zzz"),
        ("merges.txt", "onlyone"),
        ("tokenizer_config.json", '{"eos_token": "missing"}'),
    ],
)
def test_damaged_files_are_rejected(name, content, folder):
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=str(folder)):
        Tokenizer.load(folder)
