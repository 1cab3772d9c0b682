"""Analyses of a trace: comparison, effects of edits, attribution, attention scores and the logit lens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clearhead.api.base import Id, Ids, Index, Range, RequestModel, Text, WireModel
from clearhead.api.inspection import TextRequest

MAX_HOPS = 64
MAX_COMPARED = 1024  # tokens
MAX_SWEPT = 256  # tokens
MAX_LENS = 128  # rows in one response

TokenId = Annotated[Id, Field(description="A token id.")]
Position = Annotated[Index, Field(description="A position, counted from 0, or from the end if negative.")]
Blocks = Annotated[
    Range | None,
    Field(description="The blocks, from a start to an exclusive stop; all by default.", examples=[[0, 4]]),
]


class CompareRequest(TextRequest):
    """Two texts in one model, or one text in two models of the same shape."""

    other: TextRequest
    blocks: Blocks = None


class SiteDistance(WireModel):
    site: str
    distance: float | None


class CompareResponse(WireModel):
    """The aligned positions, and the distance at each site: ‖difference‖ / ‖value‖."""

    pairs: list[tuple[int, int]]
    distances: list[SiteDistance] = Field(description="Sites outside the blocks are returned with block 0.")


class EffectsRequest(TextRequest):
    """A token's log-probability after each of many edits."""

    token: TokenId
    position: Position = -1
    over: Literal["head", "position"] = Field(
        "head", description="Edit each head's output, or each block's input at each position."
    )
    source: Text | Ids | None = Field(
        None,
        description="Patch from this text, which must have the same number of tokens; zero-ablate by default.",
    )
    blocks: Blocks = None


class EffectsResponse(WireModel):
    """The token's log-probability before any edit and, for each block, after each edit."""

    before: float | None
    after: list[list[float | None]]


class Hop(RequestModel):
    """A head, and a position it attends to."""

    block: Annotated[int, Field(ge=0, lt=2**31)]
    head: Annotated[int, Field(ge=0, lt=2**31)]
    source: Annotated[int, Field(ge=0, lt=2**31)]


class AttributeRequest(TextRequest):
    """The contributions to a token's logit, to the difference between two logits, or to what a head adds to either."""

    token: TokenId
    against: TokenId | None = Field(
        None,
        description="The id of a second token, whose logit is subtracted: why this token and not that one.",
    )
    position: Position = -1
    through: Annotated[list[Hop], Field(fail_fast=True, max_length=MAX_HOPS)] = Field(
        [],
        description="A path from the logit backward: each hop is in an earlier block than the previous hop.",
    )
    heads: Annotated[int, Field(ge=0, le=64)] = Field(
        12,
        description="How many heads to break down by token, starting with the largest contributions.",
    )


class Part(WireModel):
    name: str
    value: float | None


class HeadTokens(WireModel):
    """The contribution of each position through a head."""

    block: int
    head: int
    values: list[float | None]


class AttributeResponse(WireModel):
    """The contributions of the parts, which sum to the total."""

    position: int
    total: float | None
    parts: list[Part]
    heads: list[HeadTokens]


class WhyRequest(TextRequest):
    """The contributions to a head's attention score between a query and a key position."""

    block: Annotated[int, Field(ge=0, lt=2**31)]
    head: Annotated[int, Field(ge=0, lt=2**31)]
    query_position: Position
    key_position: Position
    against_position: Position | None = Field(
        None, description="Another key position, whose score is subtracted."
    )
    count: Annotated[int, Field(ge=1, le=200)] = Field(20, description="How many pairs of parts to return.")


class PartPair(WireModel):
    query: str
    key: str
    value: float | None


class WhyResponse(WireModel):
    """The score or difference, each part's contribution on either side, and the pairs that contribute most."""

    score: float | None
    query: list[Part]
    key: list[Part]
    pairs: list[PartPair]


class LensRequest(TextRequest):
    """The logit lens: the next token that each block would predict if it were the last."""

    rows: Range | None = Field(None, description=f"At most {MAX_LENS} rows; all by default.")
    token: TokenId | None = Field(None, description="A token whose probability is returned as well.")


class LensToken(WireModel):
    text: str
    probability: float | None
    chosen: float | None = Field(description="The probability of the requested token.")


class LensResponse(WireModel):
    """The most likely next token for each block and each row."""

    tokens: list[list[LensToken]]
