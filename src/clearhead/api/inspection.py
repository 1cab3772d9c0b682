"""Traces of texts, and the values of their sites.

Matrices are sent as raw little-endian float32 values, with their shape in the X-Shape header.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clearhead.api.base import (
    MAX_CHARACTERS,
    Id,
    Ids,
    Index,
    ModelName,
    Name,
    Number,
    Numbers,
    Range,
    RequestModel,
    Text,
    WireModel,
)

MAX_EDITS = 256
MAX_TEXTS = 16  # texts that the edits of one trace may patch from
MAX_READS = 64
MAX_IDS = 4096
MAX_VALUES = 2**24  # in a binary response: 64 MB
MAX_JSON_VALUES = 2**18  # JSON takes far more time and memory
SiteName = Annotated[
    Name, Field(description="A site listed by /api/trace.", examples=["block.0.head.0.weights"])
]
WeightName = Annotated[
    Name, Field(description="A weight, named as in docs/sites.md.", examples=["block.0.head.0.W_Q"])
]


class EditRequest(RequestModel):
    """An edit of a site: exactly one of a value, a factor, or a text to patch from."""

    site: SiteName
    value: Number | Numbers | Annotated[list[Numbers], Field(fail_fast=True)] | None = Field(
        None, description="One number for all elements, or one for each element."
    )
    scale: Number | None = Field(None, description="Multiply the site's value by this factor.")
    text: Text | None = Field(
        None,
        description=f"Take the site's value from this text; at most {MAX_TEXTS} different texts per request.",
    )
    at: Annotated[list[Index], Field(fail_fast=True, min_length=1, max_length=MAX_CHARACTERS)] | None = Field(
        None,
        description="The positions to edit, counted from 0, or from the end if negative; all by default.",
    )
    columns: Annotated[list[Index], Field(fail_fast=True, min_length=1, max_length=MAX_CHARACTERS)] | None = (
        Field(None, description="The columns to edit: neurons, features or key positions; all by default.")
    )


class TextRequest(RequestModel):
    """A text to run through a model, with edits."""

    model: ModelName
    text: Text | Ids = Field(description="A text, or token ids.", examples=["The duck crossed the road"])
    edits: Annotated[list[EditRequest], Field(fail_fast=True, max_length=MAX_EDITS)] = Field(
        [], description="All are active together; edits of the same site are applied in order."
    )


class TraceRequest(TextRequest):
    """The next tokens, and the sites that can be requested."""

    count: Annotated[int, Field(ge=1, le=1000)] = Field(
        10, description="How many of the most likely next tokens to return."
    )
    sites: bool = Field(True, description="Whether to list the sites, of which there are many.")


class Slice(RequestModel):
    """Rows and columns, each from a start to an exclusive stop; all by default."""

    rows: Range | None = Field(None, examples=[[0, 5]])
    columns: Range | None = None


class SiteRequest(TextRequest, Slice):
    """The value of one site."""

    site: SiteName


class SliceRead(Slice):
    """A slice of one site or of one weight."""

    site: SiteName | None = None
    weight: WeightName | None = None


class SitesRequest(TextRequest):
    """Several slices at once."""

    reads: Annotated[list[SliceRead], Field(fail_fast=True, min_length=1, max_length=MAX_READS)]


class PatternsRequest(TextRequest):
    """The attention weights of all heads of some blocks, pooled into thumbnails."""

    blocks: Range | None = Field(
        None, description="The blocks, from a start to an exclusive stop; all by default."
    )
    cells: Annotated[int, Field(ge=1, le=64)] = Field(24, description="The maximum number of cells per side.")


class WeightRequest(Slice):
    """A weight by name."""

    model: ModelName
    name: WeightName


class TokensRequest(RequestModel):
    """A text to tokenize."""

    model: ModelName
    text: Text


class TokensResponse(WireModel):
    ids: list[int]
    tokens: list[str]


class TokenTextsRequest(RequestModel):
    """Token ids to convert to text."""

    model: ModelName
    ids: Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MAX_IDS)]


class TokenTextsResponse(WireModel):
    tokens: list[str] = Field(description="The text of each token, in the order of the request.")


class NextToken(WireModel):
    id: int
    text: str
    logit: float | None
    probability: float | None


class SiteShape(WireModel):
    name: str
    shape: list[int]


class TraceResponse(WireModel):
    """The text's tokens, the most likely next tokens, and every site that can be requested."""

    ids: list[int]
    text: str = Field(description="The decoded ids, without tokens that have no text.")
    tokens: list[str]
    next: list[NextToken]
    sites: list[SiteShape]


class Matrix(WireModel):
    """A matrix as JSON; numbers that are not finite are null."""

    shape: list[int]
    values: list[float | None] | list[list[float | None]]
