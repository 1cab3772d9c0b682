"""A tiny subset of English: a seeded grammar that writes stories and knows the antecedent of every pronoun.

A plot expands into sentence templates, and a cast of words, drawn once per story, fills their slots. A slot
is written `{thing}`, `{a thing}` with its article, or `{hero.his}` for a pronoun that refers to the hero
(`{hero.His}` at the start of a sentence). The parser is built from the same templates and words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from random import Random
from typing import TypeVar

Item = TypeVar("Item")
Words = tuple[str, ...]
Kind = dict[str, Words]

GIRLS = ("Anna", "Clara", "Ella", "Emma", "Lily", "Mia", "Nora", "Rosa", "Ruth", "Zoe")
BOYS = ("Ben", "Finn", "Hugo", "Jack", "Leo", "Max", "Noah", "Paul", "Sam", "Tom")
FARM_ANIMALS = ("cat", "chicken", "dog", "duck", "goat", "lamb", "pig", "rabbit")
WILD_ANIMALS = ("fox", "frog", "hedgehog", "mouse", "otter", "owl", "squirrel", "turtle")
ANIMALS = FARM_ANIMALS + WILD_ANIMALS
TOYS = ("ball", "boat", "book", "drum", "kite", "puppet", "sled", "trumpet")
GOODS = ("apron", "blanket", "clock", "hat", "lamp", "pillow", "teapot", "umbrella")
THINGS = TOYS + GOODS
CONTAINERS = ("bag", "basket", "box", "bucket", "chest", "crate")
PLACES = ("castle", "forest", "garden", "market", "meadow", "orchard", "park", "town", "valley", "village")

SHE = {"he": "she", "him": "her", "his": "her"}
HE = {"he": "he", "him": "him", "his": "his"}
IT = {"it": "it"}


def _noun(role: str, nouns: Words, pronouns: dict[str, str]) -> Kind:
    return {role: nouns} | {f"{role}.{form}": (word,) for form, word in pronouns.items()}


# One kind is drawn from each family, and one word for each of its slots. Words that must agree share a kind.
# Hero and friend differ in gender, so "he" and "she" are never ambiguous.
FAMILIES: tuple[tuple[Kind, ...], ...] = (
    (
        {"girl": ("girl",), **_noun("hero", GIRLS, SHE), **_noun("friend", BOYS, HE)},
        {"girl": ("boy",), **_noun("hero", BOYS, HE), **_noun("friend", GIRLS, SHE)},
    ),
    (_noun("animal", ANIMALS, IT),),
    (
        {"tired": ("tired", "sleepy", "weak"), "helped": ("carried", "held")},
        {"tired": ("hungry",), "helped": ("fed",)},
        {"tired": ("scared",), "helped": ("calmed", "hugged")},
    ),
    (
        {"cross": ("cross",), **_noun("barrier", ("road", "street"), IT), "wide": ("icy", "muddy", "wide")},
        {"cross": ("cross",), **_noun("barrier", ("lake", "river", "stream"), IT), "wide": ("deep", "wide")},
        {"cross": ("climb",), **_noun("barrier", ("hill", "rock", "wall"), IT), "wide": ("high", "steep")},
        {"cross": ("enter",), **_noun("barrier", ("cave", "tunnel"), IT), "wide": ("dark", "narrow")},
    ),
    (_noun("thing", THINGS, IT),),
    (_noun("container", CONTAINERS, IT),),
    ({"big": ("big", "large"), "small": ("narrow", "small")},),
    ({"red": ("blue", "green", "orange", "red", "white", "yellow")},),
    ({"place": PLACES},),
    ({"morning": ("afternoon", "day", "evening", "morning")},),
    # A thing is never found where it is looked for.
    ({"near": ("behind", "near", "under"), "tree": ("bush", "fence", "gate", "tree")},),
    ({"below": ("behind", "near", "under"), "bench": ("bench", "bridge", "cart", "ladder")},),
    ({"happy": ("glad", "happy")},),
    ({"bedtime": ("bedtime", "dinner", "sunset")},),
)

# Each alternative is a sequence of plots and scenes. Once a thing has met an animal or a container, "it" is
# used only where the reason disambiguates it.
PLOTS: dict[str, Words] = {
    "story": (
        "live own lose complain help find restore play",
        "live own lose search help find thank play",
        "live own lose help find packing play",
        "live own lose complain spot carrying reunion",
        "live own lose search spot carrying reunion",
        "encounter approach crossing befriend",
        "encounter approach care befriend",
        "arrive company meet remark crossing share",
        "live want help gift admire thank play",
        "live want help gift packing play",
    ),
    "encounter": ("arrive meet", "live run_into"),
    "approach": ("bond", "greet bond"),
    "packing": ("pack big_thing embrace", "pack small_container replace"),
    "carrying": ("tired_carrier comfort", "big_load assist"),
    "crossing": ("tired_traveler comfort", "wide_barrier detour"),
}

SCENES: dict[str, Words] = {
    "live": (
        "{hero} lived near the {place}.",
        "{hero} liked to play in the {place}.",
        "Once a {girl} named {hero} lived near the {place}.",
    ),
    "arrive": (
        "One {morning}, {hero} was in the {place}.",
        "One {morning}, {hero} went to the {place}.",
    ),
    "own": (
        "{hero.He} had {a red} {thing}.",
        "{hero.He} loved {hero.his} {red} {thing}.",
        "{hero.He} had {a thing}, and {thing.it} was {red}.",
    ),
    "lose": (
        "But one {morning}, {hero.he} lost {thing.it} in the {place}.",
        "One {morning}, {hero} lost {hero.his} {thing}.",
    ),
    "complain": (
        '"Where is my {thing}?" asked {hero}.',
        '"My {red} {thing} is gone!" cried {hero}.',
        '"I cannot find my {thing}," said {hero}.',
    ),
    "search": (
        "{hero.He} looked for {thing.it} {near} the {tree}.",
        "{hero.He} was sad because {thing.it} was gone.",
        "{hero} looked and looked, but {thing.it} was not there.",
    ),
    "help": (
        "{hero.His} friend {friend} came to help {hero.him}.",
        '"I will help you," said {hero.his} friend {friend}.',
        "{friend} saw that {hero.he} was sad.",
    ),
    "find": (
        "{friend.He} found {thing.it} {below} the {bench}.",
        "Soon {hero} and {friend} found the {thing} {below} the {bench}.",
    ),
    "restore": (
        '"Here is your {thing}," said {friend}.',
        "{friend} gave {thing.it} back to {hero.him}.",
    ),
    "thank": (
        '"Thank you, {friend}!" said {hero}.',
        "{hero} thanked {friend} for {friend.his} help.",
    ),
    "play": (
        "{hero} and {friend} played with the {thing} until {bedtime}.",
        "{hero} was {happy}, and {friend} was {happy} too.",
        "Then {hero} and {friend} went home with the {thing}.",
    ),
    "want": (
        "{hero.He} wanted {a red} {thing}.",
        '"I want {a red} {thing}," said {hero}.',
    ),
    "gift": (
        "{friend.He} made {a red} {thing} for {hero.him}.",
        "{friend} gave {hero.him} {a red} {thing}.",
    ),
    "admire": (
        "{hero} was {happy} because {thing.it} was {red}.",
        '"What a lovely {thing}!" said {hero}.',
    ),
    "pack": (
        "{hero} wanted to take {thing.it} home in {a container}.",
        '"Put {thing.it} in the {container}," said {friend}.',
    ),
    "big_thing": ("The {thing} didn't fit in the {container} because {thing.it} was too {big}.",),
    "small_container": ("The {thing} didn't fit in the {container} because {container.it} was too {small}.",),
    "embrace": (
        "So {hero} took the {thing} in {hero.his} arms.",
        "So {hero} and {friend} carried the {thing} together.",
    ),
    "replace": ("So {friend} gave {hero.him} a bigger {container}.",),
    "spot": (
        "Then {hero.he} saw {a animal} with the {thing}.",
        "A little {animal} found the {thing} {below} the {bench}.",
    ),
    "tired_carrier": ("The {animal} couldn't carry the {thing} because {animal.it} was too {tired}.",),
    "big_load": ("The {animal} couldn't carry the {thing} because {thing.it} was too {big}.",),
    "assist": ("So {hero} helped the {animal} with the {thing}.",),
    "reunion": (
        "{hero} thanked the {animal} and took {hero.his} {thing} home.",
        "Now {hero} had {hero.his} {thing} and a new friend.",
    ),
    "meet": (
        "{hero.He} saw {a animal} {near} the {tree}.",
        "A little {animal} came to {hero.him}.",
    ),
    "run_into": (
        "One {morning}, {hero.he} met {a animal}.",
        "One {morning}, {hero.he} saw a little {animal} {near} the {tree}.",
    ),
    "greet": (
        '"Hello, little {animal}!" said {hero}.',
        '"Where is your home?" asked {hero}.',
    ),
    "bond": (
        "{hero} wanted to take {animal.it} home with {hero.him}.",
        "The {animal} liked {hero} and wanted to go home with {hero.him}.",
    ),
    "tired_traveler": ("The {animal} didn't {cross} the {barrier} because {animal.it} was too {tired}.",),
    "wide_barrier": ("The {animal} didn't {cross} the {barrier} because {barrier.it} was too {wide}.",),
    "comfort": (
        "So {hero} {helped} the {animal}.",
        "Then {hero} {helped} the {tired} {animal}.",
    ),
    "detour": (
        "So {hero} showed the {animal} another way.",
        "So {hero} and the {animal} went another way.",
    ),
    "care": (
        "The {animal} was {tired}, so {hero} {helped} {animal.it}.",
        "{hero} {helped} {animal.it} because {animal.it} was {tired}.",
    ),
    "befriend": (
        "The {animal} was {happy}, and {hero} was {happy} too.",
        "From then on, {hero} and the {animal} were friends.",
        "{hero} and the {animal} played in the {place} until {bedtime}.",
    ),
    "company": (
        "{hero.His} friend {friend} was there too.",
        "{hero.He} met {hero.his} friend {friend} there.",
    ),
    "remark": (
        '"Look at the little {animal}!" said {friend}.',
        "{friend} wanted to take {animal.it} home with {friend.him}.",
    ),
    "share": ("{hero} and {friend} played with the {animal} until {bedtime}.",),
}


@dataclass(frozen=True)
class Span:
    """Character offsets into a story's text."""

    start: int
    stop: int


@dataclass(frozen=True)
class Pronoun:
    """A pronoun, and the last mention of its antecedent before it, without the article."""

    span: Span
    antecedent: Span


@dataclass(frozen=True)
class Story:
    text: str
    pronouns: tuple[Pronoun, ...]


def story(seed: int, number: int) -> Story:
    """Write the story with this number for this seed."""
    random = Random(f"{seed} {number}")  # noqa: S311
    cast: Kind = {
        slot: (choose(words, random),)
        for family in FAMILIES
        for slot, words in choose(family, random).items()
    }
    text = ""
    pronouns = []
    mentions: dict[str, Span] = {}
    for piece in _pieces(" ".join(_unfold("story", random))):
        if isinstance(piece, str):
            text += piece
            continue
        (word,) = piece.words(cast)
        if piece.article:
            text += "an " if word[0] in "aeiou" else "a "
        span = Span(len(text), len(text) + len(word))
        text += word
        if piece.form:
            pronouns.append(Pronoun(span, mentions[piece.role]))
        else:
            mentions[piece.role] = span
    return Story(text, tuple(pronouns))


def stories(seed: int = 0) -> Iterator[Story]:
    """Write an endless series of stories for this seed."""
    return (story(seed, number) for number in count())


def sentences(text: str) -> list[str]:
    """Split text into sentences; speech belongs to the sentence that quotes it, and a line break ends a sentence."""
    return [sentence for line in text.splitlines() for sentence in _split_line(line)]


def parses(sentence: str) -> bool:
    """Whether this is one sentence that the grammar can generate."""
    return any(pattern.fullmatch(sentence) for pattern in _patterns())


@dataclass(frozen=True)
class _Slot:
    role: str
    form: str  # form of the pronoun; empty for the name or noun itself
    article: bool
    capital: bool

    def words(self, kind: Kind) -> Words:
        words = kind[f"{self.role}.{self.form}" if self.form else self.role]
        return tuple(word.capitalize() for word in words) if self.capital else words


@cache
def _slot(written: str) -> _Slot:
    name = written.removeprefix("a ")
    role, _, form = name.partition(".")
    return _Slot(role, form.lower(), article=name != written, capital=form != form.lower())


def _pieces(template: str) -> list[str | _Slot]:
    parts = re.split(r"\{([^}]*)\}", template)
    return [_slot(part) if index % 2 else part for index, part in enumerate(parts)]


def choose(items: tuple[Item, ...], random: Random) -> Item:
    """A random item, stable across Python versions: random() is guaranteed to be, but choice() is not."""
    return items[int(random.random() * len(items))]


def _unfold(name: str, random: Random) -> Iterator[str]:
    if name in SCENES:
        yield choose(SCENES[name], random)
        return
    for part in choose(PLOTS[name], random).split():
        yield from _unfold(part, random)


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for end in re.finditer(r'[.!?]"?(?= +["A-Z])', line):
        if line.count('"', start, end.end()) % 2 == 0:
            yield line[start : end.end()].strip()
            start = end.end()
    if rest := line[start:].strip():
        yield rest


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    templates = [template for scene in SCENES.values() for template in scene]
    return tuple(_pattern(template, kind) for template in templates for kind in _kinds(template))


def _kinds(template: str) -> Iterator[Kind]:
    """Every combination of kinds from the families that the template draws words from."""
    roles = {piece.role for piece in _pieces(template) if isinstance(piece, _Slot)}
    for kinds in product(*(family for family in FAMILIES if roles & family[0].keys())):
        yield {slot: words for kind in kinds for slot, words in kind.items()}


def _pattern(template: str, kind: Kind) -> re.Pattern[str]:
    pattern = ""
    seen = set()
    for piece in _pieces(template):
        if isinstance(piece, str):
            pattern += re.escape(piece)
            continue
        if piece.article:
            pattern += "(?:an (?=[aeiou])|a (?![aeiou]))"
        words = "|".join(piece.words(kind))
        if piece.form:
            pattern += words
        elif piece.role in seen:
            pattern += f"(?P={piece.role})"
        else:
            pattern += f"(?P<{piece.role}>{words})"
            seen.add(piece.role)
    return re.compile(pattern)
