"""Training runs: the list of runs, their metrics, and the request that starts one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import RequestModel, Values, WireModel

MAX_TEXT = 2**26  # characters
MAX_MINUTES = 24 * 60
MAX_STEPS = 1_000_000
RunState = Literal["starting", "running", "stopping", "stopped", "finished", "failed"]
OptionalSize = Annotated[int, Field(ge=1, le=65536)] | None
RunName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class RunRequest(RequestModel):
    """A run to start, with a limit in minutes or in steps."""

    name: RunName = Field(
        description="A name that is not taken yet, made up of letters, digits, dots, dashes and underscores."
    )
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)] | None = Field(
        default=None, description="The text to train on; the built-in stories by default."
    )
    text_name: Annotated[str, StringConstraints(max_length=200)] = Field(
        "text", description="The name of the text, such as its file name."
    )
    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES)] | None = Field(
        default=None, description="3 by default, unless steps is given."
    )
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    preset: Literal["lecture", "gpt2", "modern"] = "modern"
    blocks: OptionalSize = Field(default=None, description="By default, sizes are chosen to suit the text.")
    heads: OptionalSize = None
    width: OptionalSize = None
    context: OptionalSize = None
    batch: OptionalSize = None
    tokenizer: Literal["char", "byte", "bpe", "word"] | None = None
    vocab: OptionalSize = Field(default=None, description="Vocabulary size of a bpe or word tokenizer.")
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    snapshots: Annotated[int, Field(ge=0, le=100)] = Field(
        16, description="The number of snapshots of the model, at increasing intervals."
    )


class ResumeRequest(RequestModel):
    """A stopped run to resume, or a finished one to extend."""

    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES)] | None = Field(
        default=None, description="Extend a finished run by this many minutes."
    )


class RunError(WireModel):
    """Why a run failed to start or ended early."""

    message: str
    code: str | None = None
    values: Values = Field(default={}, description="The values in the message.")


class RunDetails(WireModel):
    """A run and its progress."""

    name: str
    state: RunState
    error: RunError | None = None
    steps_done: int = 0
    steps_planned: int = Field(default=0, description="An estimate if the run is limited by time.")
    tokens: int = Field(default=0, description="Tokens trained on so far.")
    minutes: float | None = Field(
        default=None, description="For a run limited by time, including the minutes it was extended by."
    )
    kind: str = Field(default="transformer", description="The kind of network.")
    preset: str | None = Field(default=None, description="For transformers only.")
    texts: list[str] = Field(default=[], description="The names of the run's texts, if they are known.")
    snapshots: list[int] = Field(
        default=[], description="The steps with a snapshot; each can be opened as NAME@STEP."
    )
    model: str | None = Field(default=None, description="The name of the model that the run saved, if any.")
    own: bool = Field(default=False, description="Whether this server is training the run and can stop it.")
    resumable: bool = Field(default=False, description="Whether this server can resume the run.")
    extendable: bool = Field(
        default=False, description="Whether the run is finished and this server can extend it."
    )
    validated_share: float = Field(
        default=1,
        description="The share of the held-out text that the validation loss is measured on; less than 1 if there was "
        "no time for more.",
    )
    teachers: int = Field(
        default=0, description="How many teachers the run learns from; for a teacher, how many there are."
    )
    teacher: int | None = Field(default=None, description="The number of a teacher, from 1.")
    student: str | None = Field(default=None, description="The name of the run that a teacher teaches.")


class RunList(WireModel):
    runs: list[RunDetails] = Field(description="Newest first.")
    can_start: bool = Field(description="Whether this server can start runs.")
    now: str | None = Field(
        description="The run that this server is training, if any; it trains one at a time."
    )


class RunStep(WireModel):
    """One step of a run's metrics. A value is null if it is not finite or was not measured."""

    step: int
    loss: float | None
    smoothed: float | None = Field(
        description="The mean of the loss over about the last quarter of the steps, at most the last twenty."
    )
    validation: float | None
    learning_rate: float | None
    gradient_norm: float | None
    tokens: int = Field(description="Tokens trained on so far.")
    sample: str | None = Field(description="Text generated at this step.")


class RunMetrics(WireModel):
    """A run and its steps. Long runs are thinned out evenly, but all steps with a validation loss are kept."""

    run: RunDetails
    steps: list[RunStep]
    tokens_per_second: float | None = Field(
        description="Over the last few seconds; null if the run is not training, or on the first request."
    )
