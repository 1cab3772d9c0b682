"""The models that there are, what can be pulled, and what a model's heads do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clearhead.api.base import Asked, ModelName, Name, Wire
from clearhead.model.config import Config


class OpenRequest(Asked):
    """A model to be loaded."""

    model: Annotated[
        Name, Field(description="One of /api/models, or a snapshot of a run of /api/runs: NAME@STEP.")
    ]


class PullRequest(Asked):
    """A model to be pulled."""

    name: Annotated[Name, Field(description="One of those that /api/models says can be pulled.")]


class HeadsRequest(Asked):
    """What each head of a model does."""

    model: ModelName


class ModelDetails(Wire):
    """A model as we know it. One that is not loaded is, when it is opened; `error` says why it was not."""

    name: str
    state: Literal["loaded", "loading", "not loaded", "failed"]
    origin: Literal["run", "pulled", "file"] = Field(
        description="Trained here, pulled, or a folder or file from elsewhere."
    )
    error: str | None = None
    parameters: int | None = None
    kind: str | None = Field(None, description="Of network: transformer, elman, gru or lstm.")
    config: Config | None = Field(None, description="Of a transformer.")
    tokenizer: str | None = Field(None, description="Known once it is loaded.")
    chats: bool = Field(False, description="Known once it is loaded.")
    bytes: int | None = Field(None, description="On the disk.")
    licence: str | None = None


class PullableModel(Wire):
    """A model that can be pulled."""

    name: str
    title: str
    licence: str
    bytes: int = Field(description="To be downloaded.")


class ModelDetailsList(Wire):
    models: list[ModelDetails]
    can_be_pulled: list[PullableModel]


class PullState(Wire):
    """How far the last pull came."""

    name: str | None = None
    state: Literal["none", "downloading", "unpacking", "done", "cancelled", "failed"] = "none"
    done: int = 0  # bytes
    total: int = 0
    error: str | None = None


class HeadsAnswer(Wire):
    """For each kind of looking the mean weight that each head gives it: blocks × heads, from 0 to 1.

    `chance` is what a head that looks at all it can see alike would score.
    """

    kinds: dict[str, list[list[float | None]]]
    chance: dict[str, float]
