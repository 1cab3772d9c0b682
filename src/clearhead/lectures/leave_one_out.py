"""Which earlier words decide the next one: a counted model, and its prediction with one word left out.

As on the page (`web/src/model/leaveOneOut.ts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from clearhead.text.word_corpus import split_words


def predict_next(lines: Sequence[str], past: Sequence[str]) -> dict[str, float]:
    """The probabilities of the next word, largest first: naive Bayes on lines whose last word is predicted.

    One line with and one line without each word are added, so that no share is 0. Words in no line are ignored.
    """
    endings: dict[str, list[set[str]]] = {}
    for line in lines:
        *given, last = split_words(line)
        endings.setdefault(last, []).append({*given})
    known = [word for word in past if any(word in given for lines in endings.values() for given in lines)]
    scores = {
        last: len(lines)
        * prod((sum(word in given for given in lines) + 1) / (len(lines) + 2) for word in known)
        for last, lines in endings.items()
    }
    total = sum(scores.values())
    return {word: scores[word] / total for word in sorted(scores, key=lambda word: -scores[word])}


def effects_of(lines: Sequence[str], past: Sequence[str], word: str) -> list[float]:
    """For each earlier word: the probability of the next word, minus its probability without that word."""
    whole = predict_next(lines, past)[word]
    return [whole - predict_next(lines, [*past[:i], *past[i + 1 :]])[word] for i in range(len(past))]
