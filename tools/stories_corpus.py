"""The text that the built-in model `stories` is trained on, and the tokenizer for it.

The seed determines the text: stories; single sentences and endings of stories, so that a text can start anywhere;
the lectures' sentences; lists of words, each repeated, from which induction heads form; and habits, in which the
verb after a pronoun depends on its antecedent ("Lily and Tom were in the park. She skated, and he ran."), from which
heads form that attend from pronouns to antecedents. The tokenizer has one token for every word of these texts, and
splits all other words into bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from clearhead.text.corpus import Document
from clearhead.text.stories import (
    ANIMALS,
    BOYS,
    FARM_ANIMALS,
    GIRLS,
    GOODS,
    PLACES,
    THINGS,
    TOYS,
    WILD_ANIMALS,
    choose,
    sentences,
    story,
)
from clearhead.text.tokenizer import Tokenizer

SEED, VALIDATION_SEED = 20, 21  # `labs.heads` scores heads on stories with seed 1
VALIDATION_STORIES = 2000
TOKENIZER_STORIES = 3000  # enough to contain every word of the grammar

# The average number of lines of each other kind per story.
ENDINGS, LECTURES, LISTS, HABITS = 0.1, 0.02, 0.3, 0.6
MADE_UP = 0.15  # fraction of the words in a list
LONGEST_LIST = 30  # words

LECTURE_SENTENCES = (
    "The chicken didn't cross the road because it was too tired.",
    "The chicken didn't cross the road because it was too wide.",
    "I'm scared of bats.",
    "I swing bats.",
    "The quick brown fox jumps over the lazy dog.",
    "The cat gets fed.",
    "The dog gets fed.",
)
ONCE = "Once upon a time, a "
WILL = "{} had a secret child, a {}, and had written in {} will that {} belongings will belong to {}."

# What each child, animal and thing always does.
HABITS_OF = (
    (GIRLS, "sang painted danced read skated swam knitted baked drew juggled"),
    (BOYS, "whistled fished cooked jumped wrote climbed rowed dug sailed ran"),
    (FARM_ANIMALS, "purred clucked barked quacked butted bleated grunted hopped"),
    (WILD_ANIMALS, "sneaked croaked curled squeaked dived hooted chattered crawled"),
    (TOYS, "bounced floated opened boomed flew nodded slid blared"),
    (GOODS, "dried warmed ticked shrank glowed softened steamed dripped"),
)
HABIT_OF = {noun: verb for nouns, verbs in HABITS_OF for noun, verb in zip(nouns, verbs.split(), strict=True)}
# {a} and {b} are the two characters, in either order; {A} and {B} their pronouns; {x} and {y} what they do.
PAIRS = (
    "{a} and {b} were in the {place}. {A} {x}, and {B} {y}.",
    "{a} saw {b} near the {place}. {A} {x} while {B} {y}.",
    "One {morning}, {a} met {b}. {B} {y}. {A} {x} too.",
    "{a} was near the {place} with {b}. {A} {x} because {B} {y}.",
)


@dataclass(frozen=True)
class Corpus:
    """The generated text, and the tokenizer for it."""

    training: list[Document]
    validation: list[Document]
    tokenizer: Tokenizer


def make_corpus(stories: int, seed: int = SEED, validation: int = VALIDATION_STORIES) -> Corpus:
    """Return the text of this many stories, with the other lines in proportion, and its tokenizer."""
    words = list_words(seed)
    lines: dict[str, tuple[float, Callable[[int, int], str]]] = {
        "endings": (ENDINGS, _ending),
        "lectures": (LECTURES, _lecture_sentence),
        "lists": (LISTS, partial(_list_twice, words)),
        "habits": (HABITS, _habits),
    }
    training = [Document.of(f"story {i}", text) for i, text in enumerate(_generate(_story, seed, stories))]
    # All lines of a kind form one document. The end of a document is thus almost always followed by a
    # story, so a text generated without a prompt is a story.
    for name, (share, make) in lines.items():
        text = "\n".join(_generate(make, seed, max(1, round(share * stories))))
        training.append(Document.of(name, text))
    unseen = [
        Document.of(f"story {i}", text)
        for i, text in enumerate(_generate(_story, VALIDATION_SEED, validation))
    ]
    return Corpus(training, unseen, train_tokenizer(words, seed))


def list_words(seed: int = SEED) -> list[str]:
    """Return every word of the stories, the habits and the lectures' sentences."""
    texts = [ONCE, *HABIT_OF.values(), *_tokenizer_texts(seed)]
    texts += [re.sub(r"{\w+}", "", line) for line in PAIRS]
    return sorted({word for text in texts for word in re.findall(r"[A-Za-z]+", text)})


def train_tokenizer(words: Sequence[str], seed: int = SEED) -> Tokenizer:
    """Train a word tokenizer. Every word is a token with and without a space before it, capitalized or not."""
    forms = {form for word in words for form in (word, word.capitalize())}
    lists = 2 * [f"{form} {form}" for form in sorted(forms)]  # a word must occur twice to become a token
    return Tokenizer.train("word", [*_tokenizer_texts(seed), *lists])


@cache
def _tokenizer_texts(seed: int) -> tuple[str, ...]:
    stories = (story(seed, number).text for number in range(TOKENIZER_STORIES))
    return (*stories, *(_lecture_sentence(seed, number) for number in range(TOKENIZER_STORIES // 10)))


def _generate(make: Callable[[int, int], str], seed: int, count: int) -> list[str]:
    """Return the texts numbered 0 to count - 1, generated on all cores."""
    if count < 5000:
        return [make(seed, number) for number in range(count)]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(make, seed), range(count), chunksize=1000))


def _random(what: str, seed: int, number: int) -> Random:
    return Random(f"{what} {seed} {number}")


def _story(seed: int, number: int) -> str:
    return story(seed, number).text


def _ending(seed: int, number: int) -> str:
    """A sentence of a story, or the story from there on; sometimes all of it, beginning "Once upon a time"."""
    random = _random("ending", seed, number)
    parts = sentences(story(seed + 1000, number).text)
    if parts[0].startswith("Once a ") and random.random() < 0.5:
        return " ".join(parts).replace("Once a ", ONCE, 1)
    start = int(random.random() * len(parts))
    return parts[start] if random.random() < 0.5 else " ".join(parts[start:])


def _lecture_sentence(seed: int, number: int) -> str:
    random = _random("lecture", seed, number)
    if random.random() < 0.6:
        return choose(LECTURE_SENTENCES, random)
    names, his = choose(((("Damian", *BOYS), "his"), (GIRLS, "her")), random)
    girl, her = choose((("girl", "her"), ("boy", "him")), random)
    return WILL.format(choose(names, random), girl, his, his, her)


def _habits(seed: int, number: int) -> str:
    """A line about two characters, or a story with habits in it."""
    random = _random("habit", seed, number)
    return _pair_line(random) if random.random() < 0.4 else _story_with_habits(seed, number, random)


def _pair_line(random: Random) -> str:
    """A line about two of three characters (a girl, a boy, and an animal or a thing) and what each does."""
    three = {
        "she": choose(GIRLS, random),
        "he": choose(BOYS, random),
        "it": choose((*ANIMALS, *THINGS), random),
    }
    A, B = random.sample(sorted(three), 2)
    a, b = (f"the {three[each]}" if each == "it" else three[each] for each in (A, B))
    line = choose(PAIRS, random).format(
        a=a,
        b=b,
        A=A,
        B=B,
        x=HABIT_OF[three[A]],
        y=HABIT_OF[three[B]],
        place=choose(PLACES, random),
        morning=choose(("afternoon", "day", "evening", "morning"), random),
    )
    return re.sub(r"(^|\. )([a-z])", lambda found: found[1] + found[2].upper(), line)


def _story_with_habits(seed: int, number: int, random: Random) -> str:
    """A story in which the characters do what they always do, each at most once, in random places."""
    text, done = "", set[str]()
    for sentence in sentences(story(seed + 2000, number).text):
        text = f"{text} {sentence}" if text else sentence
        who = {pronoun: noun for pronoun, noun in _unambiguous(text).items() if noun not in done}
        if not who or random.random() < 0.4:
            continue
        pronoun = choose(tuple(sorted(who)), random)
        done.add(who[pronoun])
        verb = HABIT_OF[who[pronoun]]
        if text.endswith("."):
            simple = not re.search(r" and | because |\"", sentence)
            link = choose((". ", ", and ", " because ") if simple else (". ",), random)
            text = f"{text[:-1]}{link}{pronoun.capitalize() if link == '. ' else pronoun} {verb}."
        else:
            text = f"{text} {pronoun.capitalize()} {verb}."
    return text


def _unambiguous(text: str) -> dict[str, str]:
    """The pronouns that can refer to only one noun in this text, and that noun."""
    words = set(re.findall(r"[A-Za-z]+", text))
    nouns = {"she": words & {*GIRLS}, "he": words & {*BOYS}, "it": words & {*ANIMALS, *THINGS}}
    return {pronoun: next(iter(found)) for pronoun, found in nouns.items() if len(found) == 1}


def _list_twice(words: Sequence[str], seed: int, number: int) -> str:
    random = _random("list", seed, number)
    length = 3 + int(random.random() * (LONGEST_LIST - 2))
    once = " ".join(_list_word(tuple(words), random) for _ in range(length))
    return f"{once} {once}"


def _list_word(words: tuple[str, ...], random: Random) -> str:
    word = _made_up(random) if random.random() < MADE_UP else choose(words, random)
    return word.capitalize() if random.random() < 0.3 else word


def _made_up(random: Random) -> str:
    """One to four characters, mostly letters, so that the model also learns to copy words split into bytes."""
    return "".join(
        chr(
            0x61 + int(random.random() * 26) if random.random() < 0.7 else 0x21 + int(random.random() * 0x7DF)
        )
        for _ in range(1 + int(random.random() * 4))
    )
