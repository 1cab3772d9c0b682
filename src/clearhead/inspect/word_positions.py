"""Positions of words in a tokenized text, where a word may span several tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

MAX_LISTED_TOKENS = 20  # in an error message


def find_word(word: str, pieces: Sequence[str]) -> list[int]:
    """Return the position of the last token of each occurrence of a word.

    Matches whole words only: "it" does not match inside "with".
    """
    before = r"(?<!\w)" if word[:1].isalnum() else ""
    after = r"(?!\w)" if word[-1:].isalnum() else ""
    ends = list(accumulate(map(len, pieces)))
    matches = re.finditer(before + re.escape(word) + after, "".join(pieces)) if word else ()
    return [next(i for i, end in enumerate(ends) if end >= match.end()) for match in matches]


def locate(word: str, pieces: list[str], ids: list[int], tokenizer: Tokenizer | None) -> list[int]:
    """Return the positions of a word in a text, ignoring special tokens; raise UserError if there are none."""
    if not isinstance(word, str):
        raise UserError(f"word {word!r}: expected a word of the text, as a str")
    texts = pieces
    if tokenizer is not None:
        texts = [piece if tokenizer.has_text(i) else "" for i, piece in zip(ids, pieces, strict=True)]
    positions = find_word(word, texts)
    if not positions:
        more = ", …" if len(pieces) > MAX_LISTED_TOKENS else ""
        message = f"{word!r} is not a word of this text, whose tokens are {pieces[:MAX_LISTED_TOKENS]}{more}"
        raise UserError(message, "word_missing", word=word)
    return positions
