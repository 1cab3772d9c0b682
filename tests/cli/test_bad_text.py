"""Texts that cannot be trained on or read: a one-line error, and nothing left behind."""

import pytest

SMALL = ("--steps", 2, "--blocks", 1, "--width", 32, "--heads", 1)

TEXTS = {
    "empty": (b"", (), ["novel.txt is empty", "give another"]),
    "binary": (b"\x7fELF" + bytes(range(256)) * 4, (), ["novel.txt is not text", "byte 4", "NUL"]),
    "latin": ("Ein schöner Tag. ".encode("latin1") * 50, (), ["novel.txt", "byte 7", "0xf6", "iconv"]),
    "cut off": ("Tag für Tag ".encode()[:6], (), ["novel.txt ends in the middle", "its last byte"]),
    "utf-16": (
        ("Ein Tag. " * 50).encode("utf-16") + b"x",
        (),
        ["novel.txt ends in the middle", "its last byte"],
    ),
    "short": (b"abc " * 20, ("--context", 64), ["context of 64", "at least 128", "--context"]),
    "a few bytes": (b"abc", (), ["4 tokens", "provide more text"]),
    "one byte": (b"a", (), ["tokens", "provide more text"]),
    "damaged archive": (b"\x1f\x8b\x08\x00broken", (), ["novel.txt", "archive", "copy it again"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_unusable_training_text_is_rejected(name, refused, tmp_path):
    data, options, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("train", "novel.txt", "--out", "model", *SMALL, *options, words=words)


@pytest.mark.parametrize("name", ["a few bytes", "short", "empty"])
def test_unusable_training_text_is_rejected_with_a_time_budget(name, refused, tmp_path):
    data, options, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("train", "novel.txt", *options, words=words)


@pytest.mark.parametrize("preset", ["lecture", "modern"])
def test_huge_context_is_rejected_before_allocating_memory(preset, refused, story_file):
    given = ("train", story_file, "--preset", preset, "--context", 2**24)
    refused(*given, *SMALL, words=[2**24, "--context"])
    refused(*given, words=[2**24, "--context"])


@pytest.mark.parametrize("name", ["empty", "binary", "latin", "utf-16", "damaged archive"])
def test_unusable_evaluation_text_is_rejected(name, refused, tmp_path, model_folder):
    data, _, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("eval", model_folder, "novel.txt", words=words)


def test_missing_text_is_rejected(refused, tmp_path, model_folder):
    refused("train", "nowhere.txt", *SMALL, words=["no such file: nowhere.txt"])
    refused("train", "nowhere/*.txt", *SMALL, words=["nowhere/*.txt", "check the pattern"])
    refused("eval", model_folder, "nowhere.txt", words=["no such file: nowhere.txt"])
    refused("train", "a" * 300, *SMALL, words=["aaa", "too long"])
    (tmp_path / "folder").mkdir()
    refused("train", "folder", *SMALL, words=["folder", "no text files"])
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    refused("train", ".", *SMALL, words=["no text files"])


def test_unusable_validation_text_is_rejected(refused, story_file, tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "other.txt").write_text("Ω is not in the stories.", encoding="utf-8")
    train = ("train", story_file, "--tokenizer", "char", *SMALL)
    refused(*train, "--validation", "nowhere.txt", words=["no such file: nowhere.txt"])
    refused(*train, "--validation", "empty.txt", words=["empty.txt is empty"])
    refused(*train, "--validation", "other.txt", words=["other.txt", "'Ω'", "GREEK CAPITAL LETTER OMEGA"])


def test_unknown_character_error_names_the_character(refused, model_folder, tmp_path):
    words = ["'é'", "U+00E9", "LATIN SMALL LETTER E WITH ACUTE", "character 3"]
    refused("generate", model_folder, "Café", words=words)
    refused("generate", model_folder, "Café", "--json", words=words)
    (tmp_path / "novel.txt").write_text("Café", encoding="utf-8")
    refused("eval", model_folder, "novel.txt", words=["novel.txt", *words])


def test_command_line_bytes_that_are_not_utf8_are_rejected(refused, model_folder):
    refused("generate", model_folder, "caf\udce9", words=["udce9", "UTF-8"])


def test_empty_prompt_is_rejected(refused, model_folder):
    refused("generate", model_folder, "", words=["the prompt is empty", "give some text"])
