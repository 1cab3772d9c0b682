"""Copied text: exact on planted copies, and equal to a search for every substring."""

import numpy as np
import pytest

from clearhead.evaluation import copied_text
from clearhead.evaluation.copied_text import find_copies, run_length
from clearhead.text import held_out
from clearhead.text.tokens import Tokens


def search(texts, training, n):
    """The number of tokens in runs of `n`, and the longest run, from every substring of the texts."""
    training = list(training)
    spans = {}
    copied, longest = 0, 0
    for text in texts:
        inside = [False] * len(text)
        for start in range(len(text)):
            for stop in range(start + 1, len(text) + 1):
                length = stop - start
                if length not in spans:
                    spans[length] = {
                        tuple(training[i : i + length]) for i in range(len(training) - length + 1)
                    }
                if tuple(text[start:stop]) in spans[length]:
                    if length >= n:
                        inside[start:stop] = [True] * length
                    longest = max(longest, length)
        copied += sum(inside)
    return copied, longest


def test_planted_copies_are_found_exactly():
    random = np.random.default_rng(0)
    training = random.integers(1000, size=5000)
    texts = [
        random.integers(1000, 2000, size=size) for size in (100, 60, 3)
    ]  # tokens that were never trained on
    texts[0][10:30] = training[400:420]
    texts[0][40:44] = training[:4]  # shorter than a run
    texts[1][20:60] = training[4960:]
    found = find_copies(texts, Tokens.of(training), 5)
    assert (found.tokens, found.copied, found.longest) == (163, 60, 40)
    assert (found.text, found.start) == (1, 20)
    assert found.share == 60 / 163


@pytest.mark.parametrize("n", [2, 3, 6, 12])
@pytest.mark.parametrize("collide", [False, True])
def test_the_result_equals_a_search_for_every_substring(n, collide, monkeypatch):
    monkeypatch.setattr(copied_text, "SEARCHED", 37)  # runs cross the boundaries of searched parts
    if collide:  # a hash that tells few spans apart: each is compared token by token
        coarse = held_out.hash_spans
        monkeypatch.setattr(copied_text, "hash_spans", lambda ids, n: coarse(ids, n) % np.uint64(7))
    random = np.random.default_rng(n)
    training = random.integers(4, size=200)
    texts = [random.integers(4, size=size) for size in (40, 25, 1, 0)]
    found = find_copies(texts, Tokens.of(training), n)
    assert (found.copied, found.longest) == search(texts, training, n)
    if found.longest:
        run = texts[found.text][found.start : found.start + found.longest].tolist()
        assert any(training[i : i + len(run)].tolist() == run for i in range(len(training)))


def test_the_longest_run_is_found_even_if_it_is_short():
    random = np.random.default_rng(0)
    training = random.integers(1000, size=5000)
    text = random.integers(1000, 2000, size=60)
    text[20:27] = training[300:307]
    found = find_copies([text[:15], text], Tokens.of(training), 10)
    assert (found.copied, found.share, found.longest, found.text, found.start) == (0, 0, 7, 1, 20)


def test_nothing_is_copied_from_a_text_without_the_tokens():
    found = find_copies([np.arange(10)], Tokens.of(np.arange(20, 40)), 5)
    assert (found.copied, found.longest, found.text, found.share) == (0, 0, None, 0)
    assert find_copies([], Tokens.of(np.arange(9)), 5).share == 0


def test_a_run_is_fifty_bytes_and_at_least_five_tokens():
    assert [run_length(each) for each in (1, 4, 20)] == [50, 12, 5]
