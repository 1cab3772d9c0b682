"""Vectors of words: one word in many sentences, and the words that lie nearest to it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from clearhead.api.analysis import Position
from clearhead.api.base import Asked, ModelName, Name, Text, Wire
from clearhead.api.inspection import TextRequest

MOST_SENTENCES = 64
LONGEST_SENTENCES = 4096  # tokens of all of them

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SensesRequest(Asked):
    """One word in many sentences."""

    model: ModelName
    word: Word = Field(examples=["bank"])
    sentences: Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=MOST_SENTENCES)]


class Occurrence(Wire):
    sentence: int
    position: int
    piece: str = Field(description="The token there: the last of those that the word is made of.")


class SensesAnswer(Wire):
    """At every stage, from the static vector to the end: points on a plane, and how alike the vectors are."""

    stages: list[str]
    occurrences: list[Occurrence]
    points: list[list[list[float]]]
    shares: list[list[float]] = Field(description="Of how they differ, what each direction shows.")
    cosines: list[list[list[float]]]


class Step(Asked):
    """The direction from one token to another."""

    start: Word
    end: Word


class NeighboursRequest(TextRequest):
    """The words whose vectors lie nearest to that of a position."""

    position: Position = -1
    stage: Name = Field("embedding", description="One of those that /api/senses names.")
    along: Step | None = Field(None, description="Added to the vector: as king to queen.")
    count: Annotated[int, Field(ge=1, le=100)] = 12


class Neighbour(Wire):
    id: int
    text: str
    cosine: float | None


class NeighboursAnswer(Wire):
    neighbours: list[Neighbour]
