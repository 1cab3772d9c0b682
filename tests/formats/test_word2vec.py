"""word2vec formats round-trip, gensim reads them, and damaged files are rejected with a one-line error."""

import resource
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.formats import word2vec
from clearhead.word_vectors import WordVectors, load_words

WORDS = ["the", "cat", "isn't", "été", "猫"]
VECTORS = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)


@pytest.fixture(params=["x.bin", "x.txt", "x.vec"])
def path(tmp_path, request):
    return tmp_path / request.param


@pytest.fixture
def saved(path):
    WordVectors(WORDS, VECTORS).save(path)
    return path


def refuse(path, match):
    with pytest.raises(UserError, match=match) as refusal:
        load_words(path)
    message = str(refusal.value)
    assert message.isprintable()
    assert str(path) in message
    assert len(message) < 1000


def test_vectors_round_trip_bit_for_bit(saved):
    loaded = load_words(str(saved))
    assert loaded.words == WORDS
    assert loaded.vectors.dtype == np.float32
    assert loaded.vectors.tobytes() == VECTORS.tobytes()
    assert word2vec.recognize(saved)
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_extreme_numbers_round_trip(path):
    small, large = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    vectors = np.array([[small, large, -0.0], [0.1, 1 / 3, -large]], np.float32)
    WordVectors(["a", "b"], vectors).save(path)
    assert load_words(path).vectors.tobytes() == vectors.tobytes()


def test_bytes_follow_the_word2vec_format(tmp_path):
    table = WordVectors(["a", "é"], np.array([[1, -2], [0.5, 0]], np.float32))
    table.save(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_bytes() == "2 2\na 1 -2\né 0.5 0\n".encode()
    table.save(tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == (
        b"2 2\na \0\0\x80\x3f\0\0\0\xc0\n\xc3\xa9 \0\0\0\x3f\0\0\0\0\n"
    )


def test_gensim_loads_saved_vectors(saved):
    gensim = import_gensim()
    vectors = gensim.KeyedVectors.load_word2vec_format(str(saved), binary=saved.suffix == ".bin")
    assert vectors.index_to_key == WORDS
    assert vectors.vectors.tobytes() == VECTORS.tobytes()


def test_vectors_saved_by_gensim_load(path):
    gensim = import_gensim()
    vectors = gensim.KeyedVectors(7)
    vectors.add_vectors(WORDS, VECTORS)
    vectors.save_word2vec_format(str(path), binary=path.suffix == ".bin")
    assert load_words(path).words == WORDS
    assert np.allclose(load_words(path).vectors, VECTORS, atol=1e-6)


def test_nearest_words_and_analogies_match_gensim(tmp_path):
    gensim = import_gensim()
    draw = np.random.default_rng(1)
    ours = WordVectors([f"w{i}" for i in range(300)], draw.normal(size=(300, 20)).astype(np.float32))
    ours.save(tmp_path / "x.bin")
    theirs = gensim.KeyedVectors.load_word2vec_format(str(tmp_path / "x.bin"), binary=True)
    for found, aim in (
        (ours.nearest("w7"), theirs.most_similar("w7")),
        (ours.analogy("w1", "w2", "w3"), theirs.most_similar(positive=["w1", "w3"], negative=["w2"])),
    ):
        assert [word for word, _ in found] == [word for word, _ in aim]
        assert [c for _, c in found] == pytest.approx([c for _, c in aim], abs=1e-5)


def import_gensim():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings from gensim and its imports
        pytest.importorskip("gensim", reason="gensim is not installed: pip install gensim")
        from gensim import models
    return models


def test_missing_newlines_and_other_whitespace_are_accepted(tmp_path):
    binary = tmp_path / "x.bin"
    binary.write_bytes(b"2 1\r\na \0\0\x80\x3fb \0\0\0\xc0")
    assert load_words(binary).vectors.tolist() == [[1], [-2]]
    text = tmp_path / "x.vec"
    text.write_bytes(b"2 2\na 1 2 \r\nb 3e0 4\n")
    assert load_words(text).vectors.tolist() == [[1, 2], [3, 4]]


def test_whitespace_bytes_inside_vectors_are_numbers(tmp_path):
    vectors = np.frombuffer(b"    \n\n\n\n 1 2\n 3 ", "<f4").reshape(2, 2)
    WordVectors(["a", "b"], vectors).save(tmp_path / "x.bin")
    assert load_words(tmp_path / "x.bin").vectors.tobytes() == vectors.tobytes()


def test_first_of_duplicate_words_is_kept(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("3 1\na 1\nb 2\na 3\n")
    loaded = load_words(path)
    assert (loaded.words, loaded.vectors.tolist()) == (["a", "b"], [[1], [2]])


@pytest.mark.parametrize("word", ["", "two words", "a\nb", "x" * 1001])
def test_words_the_format_cannot_represent_are_rejected(path, word):
    with pytest.raises(UserError, match="cannot be written"):
        WordVectors([word], VECTORS[:1]).save(path)
    assert not path.exists()


def test_unknown_suffix_is_rejected(tmp_path):
    with pytest.raises(UserError, match=r"expected a name that ends in \.bin"):
        WordVectors(WORDS, VECTORS).save(tmp_path / "x.npy")


def test_write_errors_are_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="the word vectors were not saved"):
        WordVectors(WORDS, VECTORS).save(tmp_path / "file" / "x.bin")


def test_file_truncated_anywhere_is_rejected(saved):
    whole = saved.read_bytes()
    needed = len(whole) - (saved.suffix == ".bin")  # its final newline is optional
    for n in range(needed):
        saved.write_bytes(whole[:n])
        refuse(saved, "truncated|is not word vectors|not have 7 numbers")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is not word vectors"),
        (b"hello\n", "is not word vectors"),
        (b"\0" * 1000, "is not word vectors"),
        (b"0 5\n", "is not word vectors"),
        (b"5 0\na\n", "is not word vectors"),
        (b"-1 5\na\n", "is not word vectors"),
        (b"1 99999\na 1\n", "is not word vectors"),
        (b"9" * 100 + b" 5\n", "is not word vectors"),
        (b"999999999999 10000\na 1\n", "999,999,999,999 words of 10000 numbers, but 4 bytes follow"),
        (b"1000000 300\n" + b"\0" * 5000, "truncated"),
        (b"1 2\na 1 2\nb 3 4\n" + b"c 5 6\n" * 1000, "longer than"),
        (b"1 2\na 1 2\nb 3 4\n", "continues after its 1 words"),
        (b"1 1\na \0\0\0\0\nb \0\0\0\0", "continues after its 1 words"),
        (b"2 2\na 1 2\nb 3 x4 \n", "does not have 2 numbers for word 1"),
        (b"2 2\na 1 2\nb 3 4 5\n", "does not have 2 numbers for word 1"),
        (b"1 2\na nan inf\n", "vector of 'a' has numbers that are not finite"),
        (b"1 1\na \0\0\x80\x7f", "vector of 'a' has numbers that are not finite"),
        (b"1 1\n" + b"x" * 1040 + b" 1\n", "over 1000 bytes"),
        (b"1 1\n" + b"\x01" * 1040 + b" \0\0\0\0", "over 1000 bytes"),
        (b"1 1\na 1e999\n", "not finite"),
    ],
)
def test_invalid_file_is_rejected(tmp_path, content, match):
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    refuse(path, match)


def test_folder_and_missing_file_are_rejected(tmp_path):
    refuse(tmp_path, "is a folder")
    refuse(tmp_path / "none.bin", "no such file")


def test_huge_declared_size_allocates_no_memory(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"900000000 300\na " + bytes(1200))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refuse(path, "truncated")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_text_files_are_not_recognized_as_vectors(tmp_path, story_file):
    assert not word2vec.recognize(story_file)
    assert not word2vec.recognize(tmp_path)
    assert not word2vec.recognize(tmp_path / "none.txt")
    (tmp_path / "numbers.txt").write_text("3 4\nare the first numbers, " + "and so on " * 1000)
    assert not word2vec.recognize(tmp_path / "numbers.txt")


@settings(max_examples=100)
@given(at=st.integers(0, 1000), byte=st.binary(min_size=1, max_size=4))
def test_corrupted_file_is_rejected_or_has_finite_vectors(saved, at, byte):
    WordVectors(WORDS, VECTORS).save(saved)
    whole = bytearray(saved.read_bytes())
    at %= len(whole)
    whole[at : at + len(byte)] = byte
    saved.write_bytes(whole)
    try:
        vectors = load_words(saved).vectors
    except UserError:
        return
    assert np.isfinite(vectors).all()
