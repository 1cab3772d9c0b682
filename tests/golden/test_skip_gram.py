"""The lectures' skip-gram examples."""

from clearhead.classics.skip_gram import pairs
from clearhead.text.word_corpus import split_words

FOX = "The quick brown fox jumps over the lazy dog"


def test_pairs_of_the_quick_brown_fox():
    words = split_words(FOX)
    found = list(pairs(words, window=2))
    assert found[:2] == [("the", "quick"), ("the", "brown")]
    assert found[2:5] == [("quick", "the"), ("quick", "brown"), ("quick", "fox")]
    assert found[5:9] == [("brown", "the"), ("brown", "quick"), ("brown", "fox"), ("brown", "jumps")]
    assert found[9:13] == [("fox", "quick"), ("fox", "brown"), ("fox", "jumps"), ("fox", "over")]
    assert len(found) == 2 + 3 + 5 * 4 + 3 + 2
    assert found[-2:] == [("dog", "the"), ("dog", "lazy")]


def test_pairs_are_symmetric():
    found = list(pairs(FOX.split(), window=3))
    assert sorted(found) == sorted((neighbor, center) for center, neighbor in found)
    assert list(pairs(["alone"])) == []
