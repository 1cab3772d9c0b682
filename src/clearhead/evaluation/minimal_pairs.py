"""Minimal pairs from the story grammar: two texts, one of them wrong, that differ in one word.

The pairs for a given seed and number are the same on every machine. Each is a sentence of a story, or a list of words,
with what precedes it as the context. They suit models that know this kind of English, such as the built-in one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from random import Random

from clearhead.errors import UserError
from clearhead.evaluation.items import DELIMITER, EvaluationItem
from clearhead.text.stories import (
    ANIMALS,
    BOYS,
    CONTAINERS,
    FAMILIES,
    GIRLS,
    PLACES,
    THINGS,
    Span,
    Story,
    choose,
    sentences,
    story,
)

SEED = 2  # the built-in model and the demo train on stories of other seeds
PAIRS = 100  # per category
MOST_PAIRS = 150  # some categories have only about 200 different ones
LIST = 8  # words in a list that is repeated
NAMES = re.compile(rf"\b({'|'.join(GIRLS + BOYS)})\b")
VERB_OF = {
    barrier: kind["cross"][0]
    for family in FAMILIES
    for kind in family
    if "cross" in kind
    for barrier in kind["barrier"]
}
OPPOSITE = {"he": "she", "she": "he", "him": "her", "his": "her"}


# A word of a story, and the wrong words that could stand in its place.
Change = tuple[Span, tuple[str, ...]]


def minimal_pairs(seed: int = SEED, pairs: int = PAIRS) -> list[EvaluationItem]:
    """This many different pairs of each category."""
    if type(pairs) is not int or not 1 <= pairs <= MOST_PAIRS:
        raise UserError(f"pairs = {pairs!r}: expected an integer from 1 to {MOST_PAIRS}")
    found: list[EvaluationItem] = []
    for category in (*CHANGES, INDUCTION):
        found += islice(_items(category, seed), pairs)
    return found


def _items(category: str, seed: int) -> Iterator[EvaluationItem]:
    """An endless sequence of different pairs of a category."""
    seen: set[EvaluationItem] = set()
    for number in count():
        random = Random(f"{category} {seed} {number}")  # noqa: S311
        item = _list_item(random) if category == INDUCTION else _story_item(category, seed, number, random)
        if item is not None and item not in seen:
            seen.add(item)
            yield item


def _story_item(category: str, seed: int, number: int, random: Random) -> EvaluationItem | None:
    """A story up to the sentence with the wrong word; None if the story offers no such word."""
    sample = story(seed, number)
    changes = tuple(CHANGES[category](sample))
    if not changes:
        return None
    span, words = choose(changes, random)
    start = 0
    for sentence in sentences(sample.text):
        start = sample.text.index(sentence, start)
        if span.start < start + len(sentence):
            break
        start += len(sentence)
    bad = sentence[: span.start - start] + choose(words, random) + sentence[span.stop - start :]
    return EvaluationItem("pair", sample.text[:start].rstrip(), (sentence, bad), category=category)


def _list_item(random: Random) -> EvaluationItem:
    """A list of words and the beginning of its repetition. The wrong word is another word from the list."""
    words = tuple(
        sorted({choose((*ANIMALS, *THINGS, *CONTAINERS, *PLACES), random) for _ in range(2 * LIST)})
    )
    order = sorted(words, key=lambda _: random.random())[:LIST]
    last = 1 + int(random.random() * (LIST - 1))
    wrong = choose(tuple(word for word in order if word != order[last]), random)
    return EvaluationItem(
        "pair", DELIMITER.join([*order, *order[:last]]), (order[last], wrong), category=INDUCTION
    )


def _articles(sample: Story) -> Iterator[Change]:
    """“a” before a vowel, or “an” before a consonant."""
    for found in re.finditer(r"\b(an?) [a-z]", sample.text):
        yield Span(*found.span(1)), ("an" if found[1] == "a" else "a",)


def _nouns(sample: Story) -> Iterator[Change]:
    """“a boy named Ella”."""
    for found in re.finditer(r"\b(girl|boy) named", sample.text):
        yield Span(*found.span(1)), ("boy" if found[1] == "girl" else "girl",)


def _verbs(sample: Story) -> Iterator[Change]:
    """“climb the river”."""
    for found in re.finditer(r"\bdidn't (\w+) the (\w+)", sample.text):
        if found[2] in VERB_OF:
            yield Span(*found.span(1)), tuple(sorted({*VERB_OF.values()} - {found[1]}))


def _pronouns(sample: Story) -> Iterator[Change]:
    """“he” in a story in which only a girl has been named."""
    for pronoun in sample.pronouns:
        span, text = pronoun.span, sample.text
        named = NAMES.findall(text, 0, span.start)
        word = text[span.start : span.stop]
        if word.lower() == "it" or ({*named} & {*GIRLS} and {*named} & {*BOYS}):
            continue
        is_object = re.match(r"[.,!?\"]| an? ", text[span.stop :])
        wrong = OPPOSITE.get(word.lower(), "him" if is_object else "his")
        yield span, (wrong.capitalize() if word[0].isupper() else wrong,)


def _names(sample: Story) -> Iterator[Change]:
    """A name that the story has not mentioned, in place of one that it has."""
    named = {*NAMES.findall(sample.text)}
    for found in NAMES.finditer(sample.text):
        if found[0] in NAMES.findall(sample.text, 0, found.start()):
            alike = GIRLS if found[0] in GIRLS else BOYS
            yield Span(*found.span()), tuple(name for name in alike if name not in named)


INDUCTION = "induction"
CHANGES: dict[str, Callable[[Story], Iterator[Change]]] = {
    "agreement: article": _articles,
    "agreement: noun": _nouns,
    "agreement: verb": _verbs,
    "pronoun": _pronouns,
    "copied name": _names,
}
