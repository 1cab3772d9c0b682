"""Words of a text, and the text as word ids."""

import gzip
from unicodedata import normalize

import numpy as np
import pytest

from clearhead.errors import UserError
from clearhead.text import word_corpus as words
from clearhead.text.corpus import Document, documents
from clearhead.text.word_corpus import END, WordCorpus, passages, split_words


def read(*texts, min_count=1):
    return WordCorpus.read([Document.of(f"text {i}", text) for i, text in enumerate(texts)], min_count)


def test_words_are_letters_and_digits():
    assert split_words("The cat's _very_ well-fed; isn’t it? 'Yes,' 42 ÉTÉ") == (
        ["the", "cat's", "very", "well", "fed", "isn't", "it", "yes", "42", "été"]
    )
    assert split_words("हिन्दी भाषा, Cafe\u0301 שָׁלוֹם") == ["हिन्दी", "भाषा", "café", normalize("NFC", "שָׁלוֹם")]
    assert split_words("… - !") == []


def test_most_frequent_word_has_id_0():
    corpus = read("b a c a b a")
    assert corpus.words == ["a", "b", "c"]
    assert corpus.counts.tolist() == [3, 2, 1]
    assert corpus.ids.tolist() == [1, 0, 2, 0, 1, 0, END]
    assert corpus.counts.sum() == 6


def test_equally_frequent_words_are_in_alphabetical_order():
    assert read("d b a c b d").words == ["b", "d", "a", "c"]


def test_blank_lines_separate_passages_but_line_breaks_do_not():
    corpus = read("one\ntwo\n \t\nthree\r\n\r\nfour", "five")
    assert list(passages(corpus)) == [["one", "two"], ["three"], ["four"], ["five"]]


def test_rare_words_are_dropped_from_the_text():
    corpus = read("x a y a z a", "b b", min_count=2)
    assert corpus.words == ["a", "b"]
    assert corpus.ids.tolist() == [0, 0, 0, END, 1, 1, END]
    with pytest.raises(UserError, match="no word occurs 4 times"):
        read("a a a", min_count=4)
    with pytest.raises(UserError, match="no word"):
        read("... !")


def test_text_split_into_pieces_gives_the_same_corpus(monkeypatch, story_text, tmp_path):
    whole = read(story_text)
    assert [whole.words[i] for i in whole.ids if i != END] == split_words(story_text)
    path = tmp_path / "stories.txt.gz"
    path.write_bytes(gzip.compress(story_text.encode()))
    monkeypatch.setattr("clearhead.text.corpus.PIECE", 100)
    monkeypatch.setattr(words, "_BLOCK", 7)
    pieces = WordCorpus.read(documents([path]))
    assert pieces.words == whole.words
    assert np.array_equal(pieces.ids, whole.ids)
    assert list(passages(pieces)) == list(passages(whole))


def test_rarest_words_are_discarded_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(words, "MOST_COUNTED", 50)
    monkeypatch.setattr("clearhead.text.corpus.PIECE", 200)
    text = " ".join(f"often{i % 10} rare{i}" for i in range(500))
    corpus = WordCorpus.read(
        [Document("long", lambda: [text[i : i + 99] for i in range(0, len(text), 99)])], 5
    )
    assert sorted(corpus.words) == [f"often{i}" for i in range(10)]
    assert corpus.counts.tolist() == [50] * 10
    assert len(corpus.ids) == 501


def test_no_temporary_files_are_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    corpus = read("some words")
    del corpus
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="nowhere cannot be written"):
        read("some words")
