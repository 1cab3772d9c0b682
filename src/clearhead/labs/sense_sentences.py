"""Sentences in which a word has one of two senses: a small seeded grammar that knows which.

Words that suggest the sense precede the word, and a clause that fits the sense follows it: to predict the
clause, a network must remember those words. `{a|b}` stands for a or b, `{}` for the word itself or a related
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from clearhead.text.stories import choose

KIN = 0.3  # share of sentences with a related word in place of the word itself


@dataclass(frozen=True)
class Sense:
    """Beginnings and endings of sentences around a word in one sense.

    The grammar never generates the `examples`, which end in the word; the lecture's come first.
    """

    examples: tuple[str, ...]
    beginnings: tuple[str, ...]
    ending: str
    kin: tuple[str, ...]


SENSES = {
    "bats": (
        Sense(
            examples=(
                "I'm scared of bats",
                "At night the cave is full of bats",
                "The vet takes care of owls and bats",
                "In the dark fly moths and bats",
            ),
            beginnings=(
                "{I'm|You're|They're|We're} {scared|afraid|fond} of {}",
                "At {night|dusk|dawn} the {cave|barn|attic|tower} is full of {}",
                "The {vet|farmer|girl|boy} takes care of {owls|foxes|frogs} and {}",
                "In the {dark|evening|forest|moonlight} fly {moths|owls|beetles} and {}",
            ),
            ending="that {sleep all day|hunt at night|fly without a sound|have wings|hang from the roof}",
            kin=("owls", "moths", "mice"),
        ),
        Sense(
            examples=(
                "I swing bats",
                "The players broke their bats",
                "The team bought gloves and bats",
                "Baseball is played with balls and bats",
            ),
            beginnings=(
                "{I|You|They|We} {swing|carry|need} {}",
                "The {players|boys|girls|winners} {broke|lost|cleaned} their {}",
                "The {team|school|club|coach} bought {gloves|balls|caps} and {}",
                "{Baseball|Cricket|Softball} is played with {balls|gloves|helmets} and {}",
            ),
            ending="that {hit the ball|are made of wood|lie in the locker|cost ten dollars|weigh two pounds}",
            kin=("sticks", "gloves", "helmets"),
        ),
    ),
    "bank": (
        Sense(
            examples=(
                "He sat by the river bank",
                "The boat lay on the muddy bank",
                "We fished from the grassy bank",
                "Trees grow along the stream and its bank",
            ),
            beginnings=(
                "{He|She|Anna|Tom} {sat|stood|slept} by the {river|lake|stream} {}",
                "The {boat|duck|net|fish} lay on the {muddy|sandy|wet} {}",
                "{I|We|They} {fished|drank|swam} from the {grassy|muddy|green} {}",
                "{Trees|Flowers|Reeds} grow along the {stream|river|brook} and its {}",
            ),
            ending="where {frogs sing|reeds grow|the water is deep|the grass is wet|ducks have a nest}",
            kin=("shore", "edge", "side"),
        ),
        Sense(
            examples=(
                "She put money in the bank",
                "He took a loan from the bank",
                "I opened an account at the bank",
                "The thieves robbed the bank",
            ),
            beginnings=(
                "{He|She|Anna|Tom} {put|left|keeps} {money|gold|coins} in the {}",
                "{He|She|Anna|Tom} took a {loan|card|letter} from the {}",
                "{I|We|They} opened {an account|a safe|a box} at the {}",
                "The {thieves|clerks|guards} {robbed|entered|closed} the {}",
            ),
            ending="where {a clerk counts|the doors are locked|a manager works|bills are paid|gold is kept}",
            kin=("vault", "office", "shop"),
        ),
    ),
}


def write_sentences(seed: int) -> Iterator[str]:
    """Yield an endless stream of sentences, each with a randomly chosen word and sense."""
    random = Random(f"senses {seed}")  # noqa: S311
    known = {example for senses in SENSES.values() for sense in senses for example in sense.examples}
    for _ in count():
        word, senses = choose(tuple(SENSES.items()), random)
        sense = choose(senses, random)
        place = choose(sense.kin, random) if random.random() < KIN else word
        beginning = _fill(choose(sense.beginnings, random), random).replace("{}", place)
        if beginning not in known:
            yield f"{beginning} {_fill(sense.ending, random)}."


def _fill(template: str, random: Random) -> str:
    return re.sub(r"\{([^}]+)\}", lambda slot: choose(tuple(slot[1].split("|")), random), template)
