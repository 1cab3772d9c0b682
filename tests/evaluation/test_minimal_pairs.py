"""The minimal pairs: deterministic, different in one word, and wrong for the reason that their category names."""

import re
from collections import Counter

import pytest

from clearhead.errors import UserError
from clearhead.evaluation.minimal_pairs import PAIRS, minimal_pairs
from clearhead.text.stories import BOYS, GIRLS, parses


@pytest.fixture(scope="module")
def pairs():
    return minimal_pairs()


def changed(item):
    """The word of the good text that the bad one replaces, and its replacement."""
    good, bad = (re.findall(r"\w+'?\w*", option) for option in item.options)
    [at] = [i for i, (one, other) in enumerate(zip(good, bad, strict=True)) if one != other]
    return good[at], bad[at]


def test_pairs_are_different_and_the_same_every_time(pairs):
    assert minimal_pairs() == pairs
    assert minimal_pairs(seed=3) != pairs
    assert len(set(pairs)) == len(pairs)
    assert set(Counter(item.category for item in pairs).values()) == {PAIRS}
    with pytest.raises(UserError, match="pairs = 0"):
        minimal_pairs(pairs=0)


def test_the_good_sentence_is_one_of_the_grammar_and_a_disagreement_is_not(pairs):
    for item in pairs:
        if item.category != "induction":
            assert parses(item.options[0]), item
        if item.category.startswith("agreement"):
            assert not parses(item.options[1]), item


def test_the_wrong_pronoun_has_a_gender_that_nobody_before_it_has(pairs):
    gender = {
        **dict.fromkeys(GIRLS, "she"),
        **dict.fromkeys(BOYS, "he"),
        "he": "he",
        "him": "he",
        "his": "he",
    }
    gender |= {"she": "she", "her": "she"}
    for item in (each for each in pairs if each.category == "pronoun"):
        good, bad = changed(item)
        start = re.search(rf"\b{good}\b", item.options[0]).start()
        before = re.findall(r"\w+", f"{item.context} {item.options[0][:start]}")
        genders = {gender[word] for word in before if word in GIRLS + BOYS}
        assert genders == {gender[good.lower()]} != {gender[bad.lower()]}, item


def test_the_wrong_name_is_new_and_the_right_one_is_not(pairs):
    for item in (each for each in pairs if each.category == "copied name"):
        good, bad = changed(item)
        whole = f"{item.context} {item.options[0]}"
        assert whole.count(good) >= 2, item
        assert bad not in whole, item
        assert (good in GIRLS) == (bad in GIRLS)


def test_the_right_word_of_a_list_follows_as_it_did_before(pairs):
    for item in (each for each in pairs if each.category == "induction"):
        *words, last = item.context.split()
        assert item.options[0] == words[words.index(last) + 1], item
        assert item.options[1] in words
