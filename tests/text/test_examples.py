"""Examples fit the tokenizer: no unknown tokens, and a space in front where it saves tokens."""

import pytest

from clearhead.formats.builtin import find
from clearhead.text.examples import (
    CHICKEN,
    EXAMPLES,
    PAIRS,
    as_tokenized,
    examples_for,
    has_whole_words,
    pairs_for,
    word_example_for,
)
from clearhead.text.tokenizer import Tokenizer

# No text begins with "The": the tokenizer knows it only after a space.
SPACED = Tokenizer.train("word", [f"Once, a hen came. {CHICKEN} tired. {CHICKEN} wide. "] * 5)


@pytest.fixture(scope="module")
def stories():
    return Tokenizer.load(find("stories"))


def test_space_is_added_only_where_it_saves_tokens(stories):
    assert len(SPACED.encode(CHICKEN)) > len(SPACED.encode(f" {CHICKEN}"))
    assert as_tokenized(SPACED, CHICKEN) == f" {CHICKEN}"
    assert as_tokenized(SPACED, f" {CHICKEN}") == f" {CHICKEN}"
    assert as_tokenized(SPACED, "Once, a hen") == "Once, a hen"
    assert as_tokenized(stories, CHICKEN) == CHICKEN


def test_text_with_unknown_tokens_is_not_an_example():
    letters = Tokenizer.train("char", ["the cat gets fed"])
    assert as_tokenized(letters, "the dog") is None
    assert examples_for(letters) == []
    assert pairs_for(letters) == []
    assert word_example_for(letters) is None
    words = Tokenizer.of_words(["the", "cat"], "[UNK]")
    assert as_tokenized(words, "the dog") is None


def test_text_longer_than_the_context_is_not_an_example(stories):
    assert as_tokenized(stories, CHICKEN, 11) == CHICKEN
    assert as_tokenized(stories, CHICKEN, 10) is None
    assert examples_for(stories, 4) == [
        "I swing bats",
        "The cat gets fed",
        "The dog gets fed",
        "Once upon a time",
    ]


def test_whole_words_are_one_token_each(stories):
    assert has_whole_words(stories, CHICKEN)
    assert not has_whole_words(stories, "The bank")
    assert not has_whole_words(SPACED, CHICKEN)
    assert has_whole_words(SPACED, f" {CHICKEN}")


def test_built_in_model_knows_the_lectures_sentences(stories):
    assert examples_for(stories) == list(EXAMPLES)
    assert pairs_for(stories) == list(PAIRS)
    split = [text for text in EXAMPLES if not has_whole_words(stories, text)]
    assert [text for text in split if "bank" not in text] == []


def test_word_example_has_whole_words(stories):
    example = word_example_for(stories)
    assert example is not None
    assert example.word != "bank"
    for sentence in example.sentences:
        assert has_whole_words(stories, sentence), sentence
        assert f" {example.word} " in sentence
