"""Texts through models, and what stands at their sites.

Matrices go as raw little-endian float32, their shape in the header X-Shape.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clearhead.api.base import (
    MOST_CHARACTERS,
    Asked,
    Id,
    Ids,
    Index,
    ModelName,
    Name,
    Number,
    Numbers,
    Range,
    Text,
    Wire,
)

MOST_EDITS = 256
MOST_TEXTS = 16  # that the edits of a trace patch from
MOST_READS = 64
MOST_WORDS = 4096  # told at once
MOST_VALUES = 2**24  # numbers of a matrix at once: 64 MB
MOST_JSON = 2**18  # as JSON, which takes far more time and room
SiteName = Annotated[
    Name, Field(description="As /api/trace lists them.", examples=["block.0.head.0.weights"])
]
WeightName = Annotated[
    Name, Field(description="As docs/sites.md names them.", examples=["block.0.head.0.W_Q"])
]


class EditRequest(Asked):
    """What to put at a site: one of a value, a factor for what is there, or what is there in another text."""

    site: SiteName
    value: Number | Numbers | Annotated[list[Numbers], Field(fail_fast=True)] | None = Field(
        None, description="One number for all that is there, or as many as there are."
    )
    scale: Number | None = Field(None, description="What is there, so many times.")
    text: Text | None = Field(
        None,
        description=f"What stands there in another text; at most {MOST_TEXTS} different ones in a request.",
    )
    at: Annotated[list[Index], Field(fail_fast=True, min_length=1, max_length=MOST_CHARACTERS)] | None = (
        Field(None, description="The positions to change, counted from 0 or back from -1; all unless said.")
    )
    columns: (
        Annotated[list[Index], Field(fail_fast=True, min_length=1, max_length=MOST_CHARACTERS)] | None
    ) = Field(
        None, description="The columns to change: neurons, features, what is looked at; all unless said."
    )


class TextRequest(Asked):
    """A text through a model, with some of what it computes changed."""

    model: ModelName
    text: Text | Ids = Field(
        description="A text, or its tokens' ids.", examples=["The duck crossed the road"]
    )
    edits: Annotated[list[EditRequest], Field(fail_fast=True, max_length=MOST_EDITS)] = Field(
        [], description="In force all together; of two at one site the later sees what the earlier gave."
    )


class TraceRequest(TextRequest):
    """What comes next, and what can be looked at."""

    count: Annotated[int, Field(ge=1, le=1000)] = Field(10, description="How many of the likeliest words.")
    sites: bool = Field(True, description="Whether to list every site; there are many.")


class Slice(Asked):
    """Rows and columns from a first one up to, and without, a last one; all unless said."""

    rows: Range | None = Field(None, examples=[[0, 5]])
    columns: Range | None = None


class SiteRequest(TextRequest, Slice):
    """What stands at one site."""

    site: SiteName


class Read(Slice):
    """A slice of one site, or of one weight."""

    site: SiteName | None = None
    weight: WeightName | None = None


class SitesRequest(TextRequest):
    """Several slices at once."""

    reads: Annotated[list[Read], Field(fail_fast=True, min_length=1, max_length=MOST_READS)]


class PatternsRequest(TextRequest):
    """The attention weights of all heads of some blocks, made small."""

    blocks: Range | None = Field(None, description="From a first to, and without, a last; all unless said.")
    cells: Annotated[int, Field(ge=1, le=64)] = Field(24, description="At most so many a side.")


class WeightRequest(Slice):
    """A weight by its name."""

    model: ModelName
    name: WeightName


class TokensRequest(Asked):
    """A text to be cut into tokens."""

    model: ModelName
    text: Text


class TokensAnswer(Wire):
    ids: list[int]
    tokens: list[str]


class WordsRequest(Asked):
    """Tokens by their ids."""

    model: ModelName
    ids: Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_WORDS)]


class WordsAnswer(Wire):
    words: list[str] = Field(description="What each says, in the order they were asked for.")


class NextWord(Wire):
    id: int
    text: str
    logit: float | None
    probability: float | None


class SiteShape(Wire):
    name: str
    shape: list[int]


class TraceAnswer(Wire):
    """The text as the model reads it, what may come next, and every site that can be asked for."""

    ids: list[int]
    text: str = Field(description="What the ids say, without tokens that have no text.")
    tokens: list[str]
    next: list[NextWord]
    sites: list[SiteShape]


class Matrix(Wire):
    """Numbers as JSON, for who asks for it; those that are not finite are null."""

    shape: list[int]
    values: list[float | None] | list[list[float | None]]
