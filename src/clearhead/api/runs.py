"""Training runs: which there are, how each goes, and what one is begun with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Asked, Values, Wire

MOST_TEXT = 2**26  # characters
MOST_MINUTES = 24 * 60
MOST_STEPS = 1_000_000
RunState = Literal["starting", "running", "stopping", "stopped", "finished", "failed"]
Size = Annotated[int, Field(ge=1, le=65536)] | None
RunName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class RunRequest(Asked):
    """A run to be begun: for so many minutes, or so many steps."""

    name: RunName = Field(description="Of a run that is not there yet: letters, digits, dots and dashes.")
    text: Annotated[str, StringConstraints(min_length=1, max_length=MOST_TEXT)] | None = Field(
        default=None, description="What it is trained on; the built-in stories, unless given."
    )
    text_name: Annotated[str, StringConstraints(max_length=200)] = Field(
        "text", description="What the text is called, such as the file that it comes from."
    )
    minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES)] | None = Field(
        default=None, description="Three, where neither is given."
    )
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    preset: Literal["lecture", "gpt2", "modern"] = "modern"
    blocks: Size = Field(default=None, description="Sizes are chosen for the text, unless given.")
    heads: Size = None
    width: Size = None
    context: Size = None
    snapshots: Annotated[int, Field(ge=0, le=100)] = Field(
        16, description="Steps at which the model is kept as it was, ever further apart."
    )


class RunError(Wire):
    """Why a run did not begin, or ended."""

    message: str
    code: str | None = None
    values: Values = Field(default={}, description="What the message is made of.")


class RunDetails(Wire):
    """A run, and how far it came."""

    name: str
    state: RunState
    error: RunError | None = None
    steps_done: int = 0
    steps_planned: int = Field(default=0, description="Where it goes by minutes, about so many.")
    tokens: int = Field(default=0, description="Read so far.")
    minutes: float | None = None
    kind: str = Field(default="transformer", description="Of network.")
    preset: str | None = Field(default=None, description="Of a transformer.")
    texts: list[str] = Field(
        default=[], description="What it is trained on, by name, as far as that is known."
    )
    snapshots: list[int] = Field(
        default=[], description="After which steps the model was kept: each can be opened as NAME@STEP."
    )
    model: str | None = Field(default=None, description="The name of the model that it saved, once it has.")
    own: bool = Field(default=False, description="Whether this server trains it, and so can stop it.")
    resumes: bool = Field(default=False, description="Whether it can be gone on with from here.")


class RunList(Wire):
    runs: list[RunDetails] = Field(description="The newest first.")
    can_start: bool = Field(description="Whether runs can be begun here at all.")
    now: str | None = Field(description="The run that this server trains now: one at a time.")


class RunStep(Wire):
    """A line of a run's metrics. What is null was not finite, or not taken."""

    step: int
    loss: float | None
    smoothed: float | None = Field(description="The loss, as the mean of about the last twenty.")
    validation: float | None
    lr_scale: float | None
    gradient_norm: float | None
    tokens: int = Field(description="Read so far.")
    sample: str | None = Field(description="What the model wrote then.")


class RunMetrics(Wire):
    """A run and its steps after one; of very many, some from all over, and all with a validation."""

    run: RunDetails
    steps: list[RunStep]
    tokens_a_second: float | None = Field(
        description="In the last seconds; null where it does not train, or was not looked at before."
    )
