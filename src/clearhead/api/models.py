"""Models: those available, those that can be pulled, and the scores of a model's heads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clearhead.api.base import ModelName, Name, RequestModel, WireModel
from clearhead.model.config import Config


class OpenRequest(RequestModel):
    """A model to load."""

    model: Annotated[
        Name,
        Field(
            description="A model listed by /api/models, or NAME@STEP, a snapshot of a run listed by /api/runs."
        ),
    ]


class PullRequest(RequestModel):
    """A model to pull."""

    name: Annotated[Name, Field(description="A model listed by /api/models under can_be_pulled.")]


class HeadsRequest(RequestModel):
    """The model whose heads to score."""

    model: ModelName


class ExamplesRequest(RequestModel):
    """The model to find examples for."""

    model: ModelName


class OpeningRequest(RequestModel):
    """The model to find a text and a head for."""

    model: ModelName


class ModelDetails(WireModel):
    """A model. Opening it loads it; `error` gives the reason if loading failed."""

    name: str
    state: Literal["loaded", "loading", "not loaded", "failed"]
    origin: Literal["run", "pulled", "built-in", "file"] = Field(
        description="Trained here, pulled, part of the package, or in any other folder or file."
    )
    error: str | None = None
    parameters: int | None = None
    kind: str | None = Field(None, description="The kind of network: transformer, elman, gru, lstm or ngram.")
    config: Config | None = Field(None, description="For transformers only.")
    tokenizer: str | None = Field(None, description="Known once the model is loaded.")
    has_chat_template: bool = Field(False, description="Known once the model is loaded.")
    bytes: int | None = Field(None, description="The model's size on disk.")
    license: str | None = None


class PullableModel(WireModel):
    """A model that can be pulled."""

    name: str
    title: str
    license: str
    bytes: int = Field(description="The size of the download.")


class ModelDetailsList(WireModel):
    models: list[ModelDetails]
    can_be_pulled: list[PullableModel]


class PullState(WireModel):
    """The progress of the current or last pull."""

    name: str | None = None
    state: Literal["none", "downloading", "unpacking", "done", "cancelled", "failed"] = "none"
    done: int = 0  # bytes
    total: int = 0
    error: str | None = None


class HeadsResponse(WireModel):
    """For each kind of attention, each head's mean attention weight of that kind: blocks × heads, from 0 to 1.

    `chance` is the score of a head with uniform attention.
    """

    kinds: dict[str, list[list[float | None]]]
    chance: dict[str, float]


class WordSentences(WireModel):
    """A word in several sentences."""

    word: str
    sentences: list[str]


class ExamplesResponse(WireModel):
    """Texts to try a model on, all of which its tokenizer encodes without unknown tokens.

    A text starts with a space if the tokenizer then needs fewer tokens.
    """

    texts: list[str]
    pairs: list[tuple[str, str]] = Field(description="Texts to compare.")
    senses: WordSentences | None = Field(description="A word whose vectors can be compared, if any.")


class OpeningResponse(WireModel):
    """A text that shows what a model has learned, and the head with the clearest role in it."""

    text: str
    position: int = Field(description="The token that attends; -1 for the last one.")
    block: int
    head: int
    role: Literal["antecedent", "induction", "previous"] | None = Field(
        description="What the head attends to; null if no head has a clear role."
    )
    weight: float = Field(description="The mean attention weight that the head puts there.")
