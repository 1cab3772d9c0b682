"""An n-gram model counted from a small text, without smoothing: one sentence per line."""

from __future__ import annotations

from dataclasses import dataclass

START = "start"


@dataclass(frozen=True)
class CountedToken:
    """A token, the context that the model knows, how often the token follows it, and how often any does."""

    token: str
    past: str
    count: int
    total: int
    probability: float
    product: float  # of the probabilities up to this token


def count_sentence(text: str, sentence: str, order: int | None) -> list[CountedToken]:
    """Each token given the `order` - 1 tokens before it, or all of them if `order` is None."""
    events = [event for line in text.splitlines() for event in _events(line.split(), order)]
    counted, product = [], 1.0
    for past, token in _events(sentence.split(), order):
        following = [other for known, other in events if known == past]
        count, total = following.count(token), len(following)
        probability = count / total if total else 0.0
        product *= probability
        counted.append(CountedToken(token, " ".join(past), count, total, probability, product))
    return counted


def _events(words: list[str], order: int | None) -> list[tuple[tuple[str, ...], str]]:
    padded = [START, *words]
    events = []
    for i, word in enumerate(words, 1):
        first = 0 if order is None else max(0, i - order + 1)
        events.append((tuple(padded[first:i]), word))
    return events
