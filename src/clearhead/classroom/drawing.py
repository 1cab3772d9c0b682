"""Texts for the exercises: sentences that the model `stories` knows, each with one clear answer."""

from __future__ import annotations

from random import Random

import torch

from clearhead.classroom.exercise import stories
from clearhead.inspect.trace import Trace
from clearhead.text.stories import BOYS, GIRLS, PLACES, story
from clearhead.text.stories import THINGS as NOUNS

NAMES = [*GIRLS, *BOYS]
THINGS = [noun for noun in NOUNS if noun[0] not in "aeiou"]  # all take the article "a"
COLORS = ["blue", "green", "red", "white", "yellow"]
STORY_SEED = 3  # of stories that the model was not trained on

MARGIN = 0.1  # between the best answer and the second best: numbers differ a little between machines
TRIES = 200


def sentence(random: Random) -> str:
    """A story's first sentence, with at least six words."""
    while True:
        first = story(STORY_SEED, random.randrange(10_000)).text.split(". ")[0]
        if '"' not in first and len(first.split()) >= 6:
            return f"{first}."


def prompt_about(random: Random, things: list[str]) -> list[str]:
    """One prompt for each thing, otherwise identical; the model predicts the thing as the next word."""
    girl, place, color = random.choice(GIRLS), random.choice(PLACES), random.choice(COLORS)
    return [
        f"{girl} lived near the {place}. She had a {thing}, and it was {color}. One morning, {girl} lost her"
        for thing in things
    ]


def strong_weight(random: Random) -> tuple[str, int, int, int, int]:
    """A text, a block, a head and two positions with a strong attention weight that one pair of components explains."""
    for _ in range(TRIES):
        text, block, number = sentence(random), random.randrange(1, 4), random.randrange(4)
        trace = _inspect(text)
        head = trace.block[block].head[number]
        query = random.randrange(2, len(trace.tokens))
        weight, key = head.weights[query].max(-1)
        if weight <= 0.4:
            continue
        parts = [part for *names, part in head.why(query, int(key)).top(1000) if "bias" not in "".join(names)]
        first, second = parts[:2]
        if abs(first) > (1 + MARGIN) * abs(second):
            return text, block, number, query, int(key)
    raise AssertionError("no strong weight was found")


def blank_prompt(random: Random) -> str:
    """The beginning of a story, up to a word whose prediction depends mainly on one earlier token."""
    tokenizer = stories().tokenizer
    for _ in range(TRIES):
        ids = tokenizer.encode(story(STORY_SEED, random.randrange(10_000)).text)
        pieces = tokenizer.pieces(ids)
        ends = [i for i in range(12, min(32, len(ids))) if ids[i] in ids[:i] and pieces[i].strip().isalpha()]
        if not ends:
            continue
        text = "".join(pieces[: random.choice(ends)])
        trace = _inspect(text)
        probability, predicted = trace.logits[-1].softmax(-1).max(-1)
        if probability < 0.5:
            continue
        lowest, second = _without_each(trace, int(predicted)).topk(2, largest=False).values
        if lowest < 0.5 * probability and second - lowest > MARGIN:
            return text
    raise AssertionError("no blank was found")


def _inspect(text: str) -> Trace:
    trace = stories().inspect(text)
    assert isinstance(trace, Trace)
    return trace


def _without_each(trace: Trace, token: int) -> torch.Tensor:
    """The probability of a token, with each earlier token removed in turn."""
    n = len(trace.tokens) - 1
    embedding = trace["embedding"].repeat(n, 1, 1)
    embedding[range(n), range(n)] = 0
    return trace.repeat(n).edit({"embedding": embedding}).logits[:, -1].softmax(-1)[:, token]
