"""Tools in OpenAI's format: functions that a model may call, the choice among them, and calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Delta, Text, WireModel

MAX_TOOLS = 128
FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class Function(WireModel):
    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = Field(
        None, description="The arguments as a JSON schema of an object; without it, the function has none."
    )
    strict: bool | None = Field(
        False,
        description=(
            "Arguments always match the schema, except for keywords that constrained decoding does not support; with "
            "`strict`, a schema with such keywords is rejected."
        ),
    )


class FunctionTool(WireModel):
    type: Literal["function"]
    function: Function


Tools = Annotated[list[FunctionTool], Field(fail_fast=True, max_length=MAX_TOOLS)]


class NamedFunction(WireModel):
    name: FunctionName


class NamedTool(WireModel):
    """The function to call."""

    type: Literal["function"]
    function: NamedFunction


class AllowedTools(WireModel):
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Field(fail_fast=True, min_length=1, max_length=MAX_TOOLS)]


class AllowedToolChoice(WireModel):
    """The functions that may be called."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolMode = Literal["none", "auto", "required"]
ToolChoice = ToolMode | NamedTool | AllowedToolChoice


class CalledFunction(WireModel):
    name: FunctionName
    arguments: Text = Field(description="A JSON object.")


class ToolCall(WireModel):
    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    type: Literal["function"] = "function"
    function: CalledFunction


class ReplyCall(WireModel):
    """A call in a reply."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class FunctionDelta(Delta):
    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Delta):
    """A part of a call: the first has the call's id and name, each of the others a piece of its arguments."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionDelta
