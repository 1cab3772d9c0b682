"""Sentences in which `it` can refer to either of two nouns, from stories that record which one.

Test sentences come in pairs that differ only in the adjective, and so in the antecedent. Shapes: B sentences,
T words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from clearhead.text.stories import story

STORIES = 4000
LONGEST = 13  # words
KEPT = 5  # one in this many pairs of nouns is held out for testing, including the lecture's
LECTURE = ("chicken", "road")
NOTHING, BLANK = "", "___"  # after the end of a sentence, and in place of a masked word


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    meant: str

    @property
    def places(self) -> tuple[int, int]:
        """The positions of the two nouns: after the first article, and before "because"."""
        return 1, self.words.index("because") - 1

    @property
    def nouns(self) -> tuple[str, str]:
        first, second = self.places
        return self.words[first], self.words[second]

    @property
    def before(self) -> tuple[str, ...]:
        """All but the adjective and the period."""
        return self.words[:-2]


@cache
def sentences() -> tuple[tuple[Sentence, ...], tuple[Sentence, ...]]:
    """Training and test sentences: no pair of nouns occurs in both."""
    sentences = tuple(_find(STORIES))
    pairs = sorted({each.nouns for each in sentences})
    kept = set(pairs[pairs.index(LECTURE) % KEPT :: KEPT])
    twins: dict[tuple[str, ...], dict[str, Sentence]] = {}
    for each in sentences:
        if each.nouns in kept:
            twins.setdefault(each.before, {}).setdefault(each.meant, each)
    both = [by_noun for by_noun in twins.values() if len(by_noun) == 2]
    tested = [by_noun[noun] for by_noun in both for noun in next(iter(by_noun.values())).nouns]
    return tuple(each for each in sentences if each.nouns not in kept), tuple(tested)


def _find(count: int) -> Iterator[Sentence]:
    for number in range(count):
        sample = story(0, number)
        for pronoun in sample.pronouns:
            if sample.text.startswith(" was too ", pronoun.span.stop):
                start = sample.text.rindex("The ", 0, pronoun.span.start)
                stop = sample.text.index(".", pronoun.span.stop) + 1
                meant = sample.text[pronoun.antecedent.start : pronoun.antecedent.stop]
                yield Sentence(tuple(re.findall(r"[\w']+|\.", sample.text[start:stop])), meant)


def lecture() -> tuple[Sentence, ...]:
    """The lecture's two sentences."""
    before = "The chicken didn't cross the road because it was too"
    adjectives = dict(zip(LECTURE, ("tired", "wide"), strict=True))
    return tuple(Sentence((*before.split(), word, "."), noun) for noun, word in adjectives.items())


@cache
def vocabulary() -> tuple[str, ...]:
    learned, tested = sentences()
    return (*sorted({word for each in learned + tested for word in each.words}), NOTHING, BLANK)


@dataclass(frozen=True)
class SentenceBatch:
    """Sentences as token ids, with the positions of interest."""

    ids: Tensor  # B T
    pronouns: Tensor  # B
    ends: Tensor  # B
    nouns: Tensor  # B 2: positions of the nouns
    meant: Tensor  # B: index of the antecedent, 0 or 1

    @classmethod
    def of(cls, sentences: tuple[Sentence, ...]) -> SentenceBatch:
        number = {word: i for i, word in enumerate(vocabulary())}
        rows = [each.words + (NOTHING,) * (LONGEST - len(each.words)) for each in sentences]
        return cls(
            torch.tensor([[number[word] for word in row] for row in rows]),
            torch.tensor([each.words.index("it") for each in sentences]),
            torch.tensor([len(each.words) - 1 for each in sentences]),
            torch.tensor([each.places for each in sentences]),
            torch.tensor([each.nouns.index(each.meant) for each in sentences]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> Tensor:
        return torch.arange(len(self))

    @property
    def answers(self) -> Tensor:
        """The antecedent: B."""
        return self.ids[self.rows, self.nouns[self.rows, self.meant]]

    def pick(self, rows: Tensor) -> SentenceBatch:
        return SentenceBatch(
            self.ids[rows], self.pronouns[rows], self.ends[rows], self.nouns[rows], self.meant[rows]
        )
