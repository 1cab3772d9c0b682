"""Held-out text is recognized in a text that has changed."""

import numpy as np
import pytest

from clearhead.text.held_out import HeldOut
from clearhead.text.tokens import IGNORED, Tokens

END = 100


@pytest.fixture
def text():
    return np.random.default_rng(0).integers(END, size=2000)


def held_out(ids, middle, separator=None):
    tokens = Tokens.of(ids, separator=separator)
    return HeldOut.of(tokens.part(0, middle), tokens.part(middle), bytes_per_token=8)


def remove(held, ids, separator=None):
    return held.remove_from(Tokens.of(np.asarray(ids), separator=separator), END)[:].tolist()


def test_appended_text_is_kept(text):
    ids = np.array([END, *text, END])
    held = held_out(ids, 1500)
    assert held.span == 32
    more = np.random.default_rng(1).integers(END, size=300)
    assert remove(held, [END, *text, *more, END]) == [*ids[:1500], *more, END]


def test_moved_passages_are_recognized(text):
    ids = np.array([END, *text, END])
    held = held_out(ids, 1500)
    moved = [*text[1600:1900], *text[:1000], *text[1530:1570]]
    assert remove(held, [END, *moved, END]) == [END, *text[:1000], END]


def test_passage_that_begins_before_the_held_out_part(text):
    """Ten tokens at the end of a document are recognized by those before them."""
    ids = np.array([END, *text, END])
    held = held_out(ids, len(ids) - 11)
    assert remove(held, [END, *text[-100:], 7, 7, 7, END]) == [END, *text[-100:-10], 7, 7, 7, END]


def test_documents_are_left_out_with_their_end_tokens(text):
    documents = [text[:400], text[400:410], text[410:800], text[800:815]]
    ids = np.concatenate([[END], *(np.append(document, END) for document in documents)])
    held = held_out(ids, 1 + 400 + 1, END)
    longer = np.append(documents[1], [5, 5])
    new = [documents[3], longer, documents[0], documents[2]]
    changed = np.concatenate([[END], *(np.append(document, END) for document in new)])
    assert remove(held, changed, END) == [END, 5, 5, END, *documents[0], END]


def test_repetitive_text_keeps_what_was_trained_on():
    ids = np.array([END, *([1, 2, 3, 4] * 200), END])
    held = held_out(ids, 700)
    assert remove(held, [*ids[:-1], 9, 9, END]) == [*ids[:700], 9, 9, END]


def test_spans_are_found_across_blocks(text, monkeypatch):
    monkeypatch.setattr("clearhead.text.held_out.SEARCHED", 64)
    ids = np.array([END, *text, END])
    held = held_out(ids, 1500)
    assert remove(held, [END, *text[1600:1900], *text[:1000], END]) == [END, *text[:1000], END]


def conversations(*all_parts):
    """Tokens of conversations, given as lists of (ids, whether they are a reply)."""
    ids, targets, starts = [], [], []
    for parts in all_parts:
        starts.append(len(ids))
        for part, is_reply in parts:
            ids += part
            targets += part if is_reply else [IGNORED] * len(part)
    return Tokens.of(ids, Tokens.of(targets), starts=starts)


def test_conversation_with_more_turns_stays_held_out():
    first = [([1, 2, 3], False), ([4, 5, 6, 0], True)]
    second = [([1, 2, 7], False), ([8, 9, 6, 0], True)]
    both = conversations(first, second)
    held = HeldOut.of(both.part(0, 7), both.part(7), bytes_per_token=4)
    longer = [*second, ([1, 1], False), ([2, 2, 0], True)]
    third = [([3, 3, 3], False), ([3, 0], True)]
    kept = held.remove_from(conversations(longer, first, third), END)
    expected = conversations(first, third)
    assert kept[:].tolist() == expected[:].tolist()
    assert kept.targets[:].tolist() == expected.targets[:].tolist()
    assert kept.documents() == expected.documents()
