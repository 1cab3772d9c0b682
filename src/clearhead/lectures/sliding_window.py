"""Generation through a sliding window: the model sees only the last words (`web/src/model/slidingWindow.ts`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WindowStep:
    """What the model sees, which part of it the text contains, and the word that follows most often."""

    first: int  # the number of the window's first word, counted from 1
    window: list[str]
    matched: int  # how many of its last words occur together in the text, followed by another word
    next: str
    count: int  # how often the next word follows those words
    total: int  # how often any word does

    @property
    def label(self) -> str:
        last = self.first + len(self.window) - 1
        return f"w{self.first} … w{last} → w{last + 1}"


def slide_window(text: Sequence[str], start: Sequence[str], length: int, count: int) -> list[WindowStep]:
    """Generate `count` words, each the most frequent after the longest part of the window that the text contains."""
    words, steps = [*start], []
    for _ in range(count):
        window = words[-length:]
        matched, following = _follow(text, window)
        ((word, times),) = following.most_common(1)
        first = len(words) - len(window) + 1
        steps.append(WindowStep(first, window, matched, word, times, following.total()))
        words.append(word)
    return steps


def _follow(text: Sequence[str], window: Sequence[str]) -> tuple[int, Counter[str]]:
    for matched in range(len(window), -1, -1):
        suffix = [*window[len(window) - matched :]]
        places = range(matched, len(text))
        if found := Counter(text[i] for i in places if [*text[i - matched : i]] == suffix):
            return matched, found
    raise AssertionError("the text has no words")
