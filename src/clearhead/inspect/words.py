"""Words among tokens: where one stands, though it may be made of several, and how alike its vectors are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clearhead.errors import UserError
from clearhead.inspect.senses import stages

if TYPE_CHECKING:
    from clearhead.inspect.read_text import ReadText

MOST_NAMED = 20  # tokens that a message lists


def find_word(word: str, pieces: Sequence[str]) -> list[int]:
    """For each time a word stands in the text, the position of the last token that it reaches into.

    As a whole word: "it" is not found in "with".
    """
    before = r"(?<!\w)" if word[:1].isalnum() else ""
    after = r"(?!\w)" if word[-1:].isalnum() else ""
    ends = list(accumulate(map(len, pieces)))
    matches = re.finditer(before + re.escape(word) + after, "".join(pieces)) if word else ()
    return [next(i for i, end in enumerate(ends) if end >= match.end()) for match in matches]


def locate(trace: ReadText, word: str) -> list[int]:
    """Where a word stands in a trace's text; special tokens say nothing."""
    if not isinstance(word, str):
        raise UserError(f"word {word!r}: expected a word of the text, as a str")
    pieces, tokenizer = trace.pieces[0], trace.tokenizer
    said = pieces
    if tokenizer is not None:
        ids = trace.ids[0].tolist()
        said = [piece if tokenizer.has_text(i) else "" for i, piece in zip(ids, pieces, strict=True)]
    found = find_word(word, said)
    if not found:
        more = ", …" if len(pieces) > MOST_NAMED else ""
        message = f"{word!r} is not a word of this text, whose tokens are {pieces[:MOST_NAMED]}{more}"
        raise UserError(message, "word_missing", word=word)
    return found


def cosines(one: ReadText, other: ReadText, word: str) -> Tensor:
    """Between a word's occurrences in two traces, at every stage: S N M."""
    here, there = one.positions_of(word), other.positions_of(word)
    tables = []
    for stage in stages(one.config):
        first, second = one.read(stage, rows=here), other.read(stage, rows=there)
        tables.append(normalize(first, dim=-1) @ normalize(second, dim=-1).T)
    return torch.stack(tables)
