"""Questions to a text's way through a model: where two differ, what matters, what wrote a word, and why."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clearhead.api.base import Asked, Id, Ids, Index, Range, Text, Wire
from clearhead.api.inspection import TextRequest

MOST_HOPS = 64
LONGEST_COMPARED = 1024  # tokens
LONGEST_SWEPT = 256
LONGEST_LENS = 128  # rows at a time

Word = Annotated[Id, Field(description="A token's id.")]
Position = Annotated[Index, Field(description="Counted from 0, or back from -1.")]
Blocks = Annotated[
    Range | None,
    Field(description="From a first to, and without, a last; all unless said.", examples=[[0, 4]]),
]


class CompareRequest(TextRequest):
    """Two texts through one model, or one through two models of the same shape."""

    other: TextRequest
    blocks: Blocks = None


class SiteDistance(Wire):
    site: str
    distance: float | None


class CompareAnswer(Wire):
    """Which positions belong together, and how far apart the two are: ‖difference‖ over ‖value‖."""

    pairs: list[tuple[int, int]]
    distances: list[SiteDistance] = Field(description="Those outside blocks come with block 0.")


class EffectsRequest(TextRequest):
    """How likely a word is when one thing after the other is changed."""

    word: Word
    position: Position = -1
    over: Literal["head", "position"] = Field(
        "head", description="Each head's output; or the stream that enters each block at each position."
    )
    source: Text | Ids | None = Field(
        None, description="Take them from this text, of as many tokens; silence them unless said."
    )
    blocks: Blocks = None


class EffectsAnswer(Wire):
    """Logarithms of the word's probability: as it is, and for each of the blocks after each change."""

    before: float | None
    after: list[list[float | None]]


class Hop(Asked):
    """A head, and the position that it looked at."""

    block: Annotated[int, Field(ge=0, lt=2**31)]
    head: Annotated[int, Field(ge=0, lt=2**31)]
    source: Annotated[int, Field(ge=0, lt=2**31)]


class AttributeRequest(TextRequest):
    """What wrote a word's logit; or, further back, what a head brought of it."""

    word: Word
    position: Position = -1
    through: Annotated[list[Hop], Field(fail_fast=True, max_length=MOST_HOPS)] = Field(
        [], description="From the end back: each in an earlier block than the one before it."
    )
    heads: Annotated[int, Field(ge=0, le=64)] = Field(
        12, description="For so many heads, those that matter most, what each token gave."
    )


class Part(Wire):
    name: str
    value: float | None


class HeadTokens(Wire):
    """What a head brought from each position."""

    block: int
    head: int
    values: list[float | None]


class AttributeAnswer(Wire):
    """The parts sum to the total."""

    position: int
    total: float | None
    parts: list[Part]
    heads: list[HeadTokens]


class WhyRequest(TextRequest):
    """Why a head looks from one position to another."""

    block: Annotated[int, Field(ge=0, lt=2**31)]
    head: Annotated[int, Field(ge=0, lt=2**31)]
    looking: Position
    looked_at: Position
    count: Annotated[int, Field(ge=1, le=200)] = Field(20, description="How many pairs of parts.")


class PartPair(Wire):
    query: str
    key: str
    value: float | None


class WhyAnswer(Wire):
    """The score, what each part gives it on either side, and the pairs of parts that matter most."""

    score: float | None
    query: list[Part]
    key: list[Part]
    pairs: list[PartPair]


class LensRequest(TextRequest):
    """What each block would say next, if the model stopped there."""

    rows: Range | None = Field(None, description=f"At most {LONGEST_LENS}; all unless said.")
    word: Word | None = Field(None, description="One whose probability is told everywhere.")


class LensWord(Wire):
    text: str
    probability: float | None
    chosen: float | None = Field(description="How likely the word is that was asked for.")


class LensAnswer(Wire):
    """For each block, and each of the rows, the likeliest next word."""

    words: list[list[LensWord]]
