"""Word tables: lookup, cosines, nearest words and analogies."""

import numpy as np
import pytest

from clearhead.classics.word_table import WordTable
from clearhead.errors import UserError

WORDS = ["king", "queen", "man", "woman", "apple", "nothing"]
# Dimensions: royal, female, fruit. Lengths differ, which cosine similarity ignores.
VECTORS = np.array([[2, 0, 0], [1, 1, 0], [0.5, -1, 0], [0.1, 1, 0], [0, 0, 3], [0, 0, 0]], np.float32)


@pytest.fixture
def table():
    return WordTable(WORDS, VECTORS)


def cosine(a, b):
    return a @ b / np.sqrt(a @ a * (b @ b))


def test_vectors_are_looked_up_by_word(table):
    assert table["queen"].tolist() == [1, 1, 0]
    assert "queen" in table
    assert "Queen" not in table
    assert (len(table), table.width) == (6, 3)
    assert repr(table) == "WordTable(6 words, width 3)"


def test_cosine_similarity_of_two_words(table):
    assert table.cosine("king", "queen") == pytest.approx(cosine(VECTORS[0], VECTORS[1]))
    assert table.cosine("man", "woman") == pytest.approx(cosine(VECTORS[2], VECTORS[3]))
    assert table.cosine("nothing", "king") == 0


def test_nearest_excludes_the_word_itself(table):
    found = table.nearest("king", 2)
    assert [word for word, _ in found] == ["queen", "man"]
    assert [c for _, c in found] == pytest.approx([table.cosine("king", w) for w in ("queen", "man")])
    assert len(table.nearest("king", 100)) == 5
    assert len(WordTable(["one"], VECTORS[:1]).nearest("one")) == 0


def test_nearest_accepts_a_vector(table):
    assert table.nearest([0, 0, 0.1], 1) == [("apple", pytest.approx(1))]
    assert table.nearest(table["king"], 1)[0][0] == "king"
    with pytest.raises(UserError, match=r"shape \(2,\): expected a word, or 3 finite numbers"):
        table.nearest([1, 2])
    with pytest.raises(UserError, match="finite"):
        table.nearest([1, 2, np.nan])


def test_analogy_subtracts_and_adds_unit_vectors(table):
    (word, found), *_ = table.analogy("king", "man", "woman")
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True).clip(1e-9)
    assert word == "queen"
    assert found == pytest.approx(cosine(units[0] - units[2] + units[3], VECTORS[1]))


def test_analogy_excludes_its_input_words(table):
    assert {word for word, _ in table.analogy("king", "man", "woman")} == {"queen", "apple", "nothing"}
    assert {word for word, _ in table.analogy("king", "king", "king", count=1)} == {"queen"}


def test_unknown_words_raise_with_a_suggestion(table):
    with pytest.raises(UserError, match=r"^'quen' is not among the 6 words; did you mean 'queen'\?$"):
        table.nearest("quen")
    with pytest.raises(UserError, match="did you mean 'king'"):
        table["King"]
    with pytest.raises(UserError, match=r"'zzzzzz' is not among the 6 words$"):
        table.analogy("king", "man", "zzzzzz")
    with pytest.raises(UserError, match="word 3: expected a word"):
        table[3]
    with pytest.raises(UserError, match="count = 0"):
        table.nearest("king", 0)
