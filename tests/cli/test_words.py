"""`clearhead words`: training, saving and querying word vectors."""

import json

import numpy as np
import pytest

from clearhead.word_vectors import WordVectors, load_words

SMALL = ("--width", "16", "--epochs", "2", "--workers", "1")


@pytest.fixture
def vectors(tmp_path):
    words = ["king", "queen", "man", "woman", "apple"]
    numbers = np.array([[2, 0, 0], [1, 1, 0], [0.5, -1, 0], [0.1, 1, 0], [0, 0, 3]], np.float32)
    WordVectors(words, numbers).save(tmp_path / "x.bin")
    return "x.bin"


def test_word_vectors_are_trained_saved_and_queried(clearhead, story_file, tmp_path):
    pytest.importorskip("numba", reason="numba, which compiles word-vector training, is not installed")
    result = clearhead("words", story_file, "--out", "x.bin", "--near", "the", "--count", 3, *SMALL)
    assert result.code == 0, result.err
    heading, *lines = result.out.splitlines()
    assert heading == "the"
    learned = load_words(tmp_path / "x.bin")
    assert [line.split()[0] for line in lines] == [word for word, _ in learned.nearest("the", 3)]
    assert learned.width == 16
    assert "100% of" in result.err
    assert result.err.endswith("saved to x.bin\n")


def test_training_prints_json_and_has_a_default_path(clearhead, story_file, tmp_path):
    pytest.importorskip("numba", reason="numba, which compiles word-vector training, is not installed")
    result = clearhead("words", story_file, "--json", "--seed", 3, *SMALL)
    report = json.loads(result.out)
    assert report["file"] == "runs/stories.bin"
    learned = load_words(tmp_path / "runs" / "stories.bin")
    assert (report["words"], report["width"]) == (len(learned), 16)
    assert report["pairs"] > 10_000
    again = clearhead("words", story_file, "--out", "again.bin", "--json", "--seed", 3, *SMALL)
    assert json.loads(again.out)["pairs"] == report["pairs"]
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "runs" / "stories.bin").read_bytes()


def test_word_vector_file_is_queried(clearhead, vectors):
    assert clearhead("words", vectors).out == "x.bin: 5 words, 3 features each\n"
    asked = clearhead("words", vectors, "--near", "king", "--analogy", "king", "man", "woman", "--count", 1)
    assert asked.out.splitlines() == ["king", "  queen  0.707", "king - man + woman", "  queen  0.899"]
    report = json.loads(clearhead("words", vectors, "--near", "king", "--near", "man", "--json").out)
    assert report["nearest"]["king"][0] == {"word": "queen", "cosine": pytest.approx(0.5**0.5)}
    assert list(report["nearest"]) == ["king", "man"]
    assert report["words"] == 5


def test_binary_vectors_convert_to_text(clearhead, vectors, tmp_path):
    assert clearhead("words", vectors, "--out", "x.txt").code == 0
    assert load_words(tmp_path / "x.txt").vectors.tolist() == load_words(vectors).vectors.tolist()
    assert clearhead("words", "x.txt", "--near", "king").out.startswith("king\n  queen")


def test_invalid_arguments_are_rejected(refused, vectors, story_file, tmp_path):
    refused("words", vectors, "--near", "kinng", words=["'kinng'", "5 words", "did you mean 'king'?"])
    refused("words", vectors, "--analogy", "king", "man", "zzz", words=["'zzz'"])
    refused("words", vectors, "--epochs", 3, words=["x.bin contains word vectors", "--epochs"])
    refused("words", vectors, story_file, words=["x.bin contains word vectors"])
    refused("words", vectors, "--near", "king", "--count", 0, words=["--count"])
    refused("words", story_file, "--out", "x.bin", words=["x.bin already exists"])
    refused("words", story_file, "--out", "x.npy", words=[".bin"])
    refused("words", story_file, "--width", 0, words=["--width 0:"])
    refused("words", "nowhere.txt", words=["no such file"])
    refused("words", "nowhere.bin", words=["no such file"])
    (tmp_path / "cut.bin").write_bytes((tmp_path / "x.bin").read_bytes()[:50])
    refused("words", "cut.bin", "--near", "king", words=["cut.bin is truncated"])
    (tmp_path / "rare.txt").write_text("each word once")
    refused("words", "rare.txt", words=["no word occurs 5 times"])


def test_queries_import_neither_torch_nor_numba(vectors):
    import subprocess
    import sys

    code = (
        "import sys; from clearhead.cli import run; run(['words', 'x.bin', '--near', 'king']); "
        "heavy = {'torch', 'numba', 'tokenizers'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("king\n  queen")


def test_unknown_word_does_not_hide_the_others(clearhead, vectors, refused):
    asked = clearhead("words", vectors, "--near", "kng", "--near", "king", "--count", 1)
    assert asked.code == 0
    assert asked.out.splitlines() == ["king", "  queen  0.707"]
    assert asked.err == "clearhead: 'kng' is not among the 5 words; did you mean 'king'?\n"
    refused("words", vectors, "--near", "kng", words=["'kng' is not among the 5 words"])
