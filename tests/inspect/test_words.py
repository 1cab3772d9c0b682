import pytest

from clearhead.inspect.words import find_word


@pytest.mark.parametrize(
    ("word", "pieces", "found"),
    [
        ("it", ["with", " it", ",", " it", "s"], [1]),
        ("bats", [" b", "ats", "!"], [1]),
        ("bats", ["bats", " and", " bats"], [0, 2]),
        ("!", ["no", "!", "!"], [1, 2]),
        ("", ["a"], []),
        ("z", ["a"], []),
    ],
)
def test_whole_words_at_their_last_token(word, pieces, found):
    assert find_word(word, pieces) == found
