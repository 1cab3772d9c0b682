"""Word vectors: one word in many sentences, and the nearest neighbors of a vector."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from clearhead.api.analysis import Position
from clearhead.api.base import ModelName, Name, RequestModel, Text, WireModel
from clearhead.api.inspection import TextRequest

MAX_SENTENCES = 64
MAX_SENTENCE_TOKENS = 4096  # in all sentences together

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SensesRequest(RequestModel):
    """One word in many sentences."""

    model: ModelName
    word: Word = Field(examples=["bank"])
    sentences: Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=MAX_SENTENCES)]


class Occurrence(WireModel):
    sentence: int
    position: int
    piece: str = Field(description="The token at this position, which is the last token of the word.")


class SensesResponse(WireModel):
    """The vectors at every stage, from the static embedding to the final one: points on a plane, and cosines."""

    stages: list[str]
    occurrences: list[Occurrence]
    points: list[list[list[float]]]
    shares: list[list[float]] = Field(
        description="The fraction of the variance explained by each axis of the plane."
    )
    cosines: list[list[list[float]]]


class Direction(RequestModel):
    """The direction from one token's vector to another's."""

    start: Word
    end: Word


class NeighborsRequest(TextRequest):
    """The tokens whose vectors are nearest to the vector at a position."""

    position: Position = -1
    stage: Name = Field("embedding", description="A stage listed by /api/senses.")
    along: Direction | None = Field(
        None, description="A direction to add to the vector, such as the one from king to queen."
    )
    count: Annotated[int, Field(ge=1, le=100)] = 12


class Neighbor(WireModel):
    id: int
    text: str
    cosine: float | None


class NeighborsResponse(WireModel):
    neighbors: list[Neighbor]
