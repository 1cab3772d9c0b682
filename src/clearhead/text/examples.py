"""Sentences to try a model on, from the lectures and the stories, in the form that suits its tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

CHICKEN = "The chicken didn't cross the road because it was too"
EXAMPLES = (
    f"{CHICKEN} tired",
    f"{CHICKEN} wide",
    CHICKEN,
    "I'm scared of bats",
    "I swing bats",
    "Damian had a secret child, a girl, and had written in his will that his belongings will belong to",
    "The quick brown fox jumps over the lazy",
    "The cat gets fed",
    "The dog gets fed",
    "Ella lived near the village. She had a trumpet, and it was",
    "Once upon a time",
    "I walked along the pond, and noticed that one of the trees along the bank",
)
PAIRS = ((f"{CHICKEN} tired", f"{CHICKEN} wide"), ("I'm scared of bats", "I swing bats"))


@dataclass(frozen=True)
class WordExample:
    """A word whose vector depends on its context, in several sentences."""

    word: str
    sentences: tuple[str, ...]


WORD_EXAMPLES = (
    WordExample(
        "bank",
        (
            "He sat by the river bank",
            "The boat lay on the bank of the river",
            "They walked along the grassy bank by the water",
            "She put money in the bank",
            "The bank gave him a loan",
            "He works at a bank in the city",
        ),
    ),
    WordExample(
        "it",
        (
            "Ella had a trumpet, and it was green",
            "Tom had a drum, and it was red",
            "Mia had a kite, and it was blue",
            f"{CHICKEN} tired",
            "The dog didn't climb the hill because it was too tired",
            "The cat didn't cross the bridge because it was too scared",
        ),
    ),
)


def as_tokenized(tokenizer: Tokenizer, text: str, most: int | None = None) -> str | None:
    """The text, with a leading space if that takes fewer tokens.

    A tokenizer trained on whole stories may have " The" as a token, but not "The", because few texts begin that way.
    Returns None if the tokenizer cannot encode the text, or needs more than `most` tokens.
    """
    forms = (text, f" {text.lstrip()}")
    counts = [_count(tokenizer, form) for form in forms]
    known = [(count, form) for count, form in zip(counts, forms, strict=True) if count is not None]
    count, form = min(known, key=lambda each: each[0], default=(0, None))
    return None if most is not None and count > most else form


def has_whole_words(tokenizer: Tokenizer, text: str) -> bool:
    """Whether every run of letters in this text is one token."""
    pieces = tokenizer.pieces(tokenizer.encode(text))
    return sum(any(map(str.isalpha, piece)) for piece in pieces) == len(re.findall(r"[^\W\d_]+", text))


def examples_for(tokenizer: Tokenizer, most: int | None = None) -> list[str]:
    """The examples that this tokenizer can encode without unknown tokens, in at most `most` tokens."""
    return [text for text in (as_tokenized(tokenizer, each, most) for each in EXAMPLES) if text is not None]


def pairs_for(tokenizer: Tokenizer, most: int | None = None) -> list[tuple[str, str]]:
    """Pairs of examples to compare."""
    pairs = (
        (as_tokenized(tokenizer, one, most), as_tokenized(tokenizer, other, most)) for one, other in PAIRS
    )
    return [(one, other) for one, other in pairs if one is not None and other is not None]


def word_example_for(tokenizer: Tokenizer, most: int | None = None) -> WordExample | None:
    """The first example whose words are whole tokens, or else the one with the fewest tokens per word.

    Returns None if no example's word is one token, as in a character-level model.
    """
    fitting = [
        WordExample(example.word, tuple(map(str, sentences)))
        for example in WORD_EXAMPLES
        if None not in (sentences := [as_tokenized(tokenizer, text, most) for text in example.sentences])
        and len(
            tokenizer.encode(
                f" {example.word}",
            )
        )
        == 1
    ]
    return min(fitting, key=lambda example: _tokens_per_word(tokenizer, example.sentences), default=None)


def _tokens_per_word(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    if all(has_whole_words(tokenizer, text) for text in texts):
        return 0.0
    return sum(len(tokenizer.encode(text)) for text in texts) / sum(len(text.split()) for text in texts)


def _count(tokenizer: Tokenizer, text: str) -> int | None:
    """The number of tokens, or None if one of them is unknown."""
    try:
        ids = tokenizer.encode(text)
    except UserError:
        return None
    unknown = tokenizer.special("unk_token")
    return None if unknown is not None and unknown in tokenizer.pieces(ids) else len(ids)
