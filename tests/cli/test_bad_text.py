"""Texts that cannot be trained on or read: one line, nothing left behind."""

import pytest

SMALL = ("--steps", 2, "--blocks", 1, "--width", 32, "--heads", 1)

TEXTS = {
    "empty": (b"", (), ["novel.txt is empty", "give another"]),
    "binary": (b"\x7fELF" + bytes(range(256)) * 4, (), ["novel.txt is not text", "byte 4", "NUL"]),
    "latin": ("Ein schöner Tag. ".encode("latin1") * 50, (), ["novel.txt", "byte 7", "0xf6", "iconv"]),
    "cut off": ("Tag für Tag ".encode()[:6], (), ["novel.txt ends in the middle", "its last byte"]),
    "utf-16": (("Ein Tag. " * 50).encode("utf-16"), (), ["novel.txt is UTF-16", "convert it"]),
    "short": (b"abc " * 20, ("--context", 64), ["context of 64", "at least 128", "--context"]),
    "a few bytes": (b"abc", (), ["4 tokens", "give more text"]),
    "one byte": (b"a", (), ["tokens", "give more text"]),
    "damaged archive": (b"\x1f\x8b\x08\x00broken", (), ["novel.txt", "archive", "copy it again"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_cannot_be_trained_on(name, refused, tmp_path):
    data, options, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("train", "novel.txt", "--out", "model", *SMALL, *options, words=words)


@pytest.mark.parametrize("name", ["a few bytes", "short", "empty"])
def test_the_same_when_trained_by_the_clock(name, refused, tmp_path):
    data, options, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("train", "novel.txt", *options, words=words)


@pytest.mark.parametrize("preset", ["lecture", "modern"])
def test_a_context_beyond_all_memory_is_refused_before_any_is_taken(preset, refused, story_file):
    given = ("train", story_file, "--preset", preset, "--context", 2**24)
    refused(*given, *SMALL, words=[2**24, "--context"])
    refused(*given, words=[2**24, "--context"])


@pytest.mark.parametrize("name", ["empty", "binary", "latin", "utf-16", "damaged archive"])
def test_a_text_that_cannot_be_evaluated(name, refused, tmp_path, model_folder):
    data, _, words = TEXTS[name]
    (tmp_path / "novel.txt").write_bytes(data)
    refused("eval", model_folder, "novel.txt", words=words)


def test_a_text_that_is_not_there(refused, tmp_path, model_folder):
    refused("train", "nowhere.txt", *SMALL, words=["no such file: nowhere.txt"])
    refused("train", "nowhere/*.txt", *SMALL, words=["nowhere/*.txt", "check the pattern"])
    refused("eval", model_folder, "nowhere.txt", words=["no such file: nowhere.txt"])
    refused("train", "a" * 300, *SMALL, words=["aaa", "too long"])
    (tmp_path / "folder").mkdir()
    refused("train", "folder", *SMALL, words=["folder", "no text files"])
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    refused("train", ".", *SMALL, words=["no text files"])


def test_a_validation_text_that_cannot_be_used(refused, story_file, tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "other.txt").write_text("Ω is not in the stories.", encoding="utf-8")
    train = ("train", story_file, "--tokenizer", "char", *SMALL)
    refused(*train, "--validation", "nowhere.txt", words=["no such file: nowhere.txt"])
    refused(*train, "--validation", "empty.txt", words=["empty.txt is empty"])
    refused(*train, "--validation", "other.txt", words=["other.txt", "'Ω'", "GREEK CAPITAL LETTER OMEGA"])


def test_an_unknown_character_is_named(refused, model_folder, tmp_path):
    words = ["'é'", "U+00E9", "LATIN SMALL LETTER E WITH ACUTE", "character 3"]
    refused("generate", model_folder, "Café", words=words)
    refused("generate", model_folder, "Café", "--json", words=words)
    (tmp_path / "novel.txt").write_text("Café", encoding="utf-8")
    refused("eval", model_folder, "novel.txt", words=["novel.txt", *words])


def test_bytes_of_the_command_line_that_are_no_text(refused, model_folder):
    refused("generate", model_folder, "caf\udce9", words=["udce9", "UTF-8"])


def test_an_empty_prompt(refused, model_folder):
    refused("generate", model_folder, "", words=["the prompt is empty", "give some text"])
