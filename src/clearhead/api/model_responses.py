"""OpenAI's responses: a conversation as items, the reply as items, and the events of a stream."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Delta, ModelName, RequestModel, Text, WireModel
from clearhead.api.openai import MAX_MESSAGES, described, limits
from clearhead.api.tools import MAX_TOOLS, Function, FunctionName, ToolMode

ItemId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class InputPart(WireModel):
    type: Literal["input_text", "output_text", "text"]
    text: Text


Content = Text | Annotated[list[InputPart], Field(fail_fast=True, max_length=64)]


class InputItem(WireModel):
    """A message, a function call, or the result of one."""

    type: Literal["message", "function_call", "function_call_output"] = "message"
    role: Literal["user", "assistant", "system", "developer"] | None = Field(
        None, description="Required in a message."
    )
    content: Content | None = Field(None, description="Required in a message.")
    call_id: ItemId | None = Field(None, description="Required in a call and in its result.")
    name: FunctionName | None = Field(None, description="Required in a call.")
    arguments: Text | None = Field(None, description="Required in a call: a JSON object.")
    output: Content | None = Field(None, description="Required in a result.")


class FunctionType(WireModel):
    type: Literal["function"]


class ResponseTool(Function, FunctionType):
    """A function whose type comes first, so that the error for any other kind of tool is about the type."""


class NamedChoice(WireModel):
    """The function to call."""

    type: Literal["function"]
    name: FunctionName


class AllowedChoice(WireModel):
    """The functions that may be called."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedChoice], Field(fail_fast=True, min_length=1, max_length=MAX_TOOLS)]


class TextFormat(WireModel):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    json_schema: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextConfig(WireModel):
    format: TextFormat | None = None
    verbosity: Any = Field(None, description="Ignored.")


class ResponseStreamOptions(WireModel):
    include_obfuscation: Any = None


class ResponseRequest(RequestModel):
    """A conversation to reply to. Responses are not stored."""

    model: ModelName
    input: Text | Annotated[list[InputItem], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)] = (
        Field(description="The user's message, or all items of the conversation.", examples=["Hello"])
    )
    instructions: Text | None = Field(None, description="A system message before the input.")
    max_output_tokens: Annotated[int, limits("tokens", lt=2**31)] | None = described("tokens", None)
    temperature: Annotated[float, limits("temperature")] | None = described("temperature", 1.0)
    top_p: Annotated[float, limits("top_p", ge=0, gt=None)] | None = described(
        "top_p", note=" 0 means greedy decoding."
    )
    top_k: Annotated[int, limits("top_k", lt=2**31)] | None = described("top_k")
    min_p: Annotated[float, limits("min_p")] | None = described("min_p")
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = described("seed", None)
    seconds: Annotated[float, limits("seconds", le=3600)] | None = described("seconds")
    tools: Annotated[list[ResponseTool], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None, description="Functions that the model may call, one per reply."
    )
    tool_choice: ToolMode | NamedChoice | AllowedChoice | None = Field(
        None,
        description="Whether the model must or may call a function, and which; `auto` if there are tools.",
    )
    text: TextConfig | None = None
    stream: bool | None = Field(False, description="Whether to stream the reply as server-sent events.")
    previous_response_id: Any = Field(
        None, description="Not supported, because responses are not stored: must be null."
    )
    conversation: Any = Field(None, description="Not supported: must be null.")
    prompt: Any = Field(None, description="Not supported: must be null.")
    background: Literal[False] | None = Field(None, description="Not supported.")
    store: Any = Field(None, description="Ignored, like all fields below: responses are not stored.")
    metadata: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Any = None
    stream_options: ResponseStreamOptions | None = None
    include: Any = None
    reasoning: Any = None
    truncation: Any = None
    top_logprobs: Any = None
    user: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    prompt_cache_options: Any = None
    context_management: Any = None


class OutputText(WireModel):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = Field(default=[])
    logprobs: list[Any] = Field(default=[])


class OutputMessage(WireModel):
    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class FunctionCall(WireModel):
    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: Literal["in_progress", "completed", "incomplete"]


class InputTokensDetails(WireModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(WireModel):
    reasoning_tokens: int = 0


class ResponseUsage(WireModel):
    input_tokens: int
    input_tokens_details: InputTokensDetails = InputTokensDetails()
    output_tokens: int
    output_tokens_details: OutputTokensDetails = OutputTokensDetails()
    total_tokens: int


class IncompleteDetails(WireModel):
    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseError(WireModel):
    code: str
    message: str


class ModelResponse(WireModel):
    """The reply, and the settings of the request."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Literal["in_progress", "completed", "incomplete", "failed"] = "in_progress"
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    output: list[OutputMessage | FunctionCall] = Field(default=[])
    usage: ResponseUsage | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: list[dict[str, Any]] = Field(default=[])
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = False
    text: dict[str, Any] = Field(default={})
    truncation: Literal["disabled"] = "disabled"
    store: Literal[False] = False
    previous_response_id: None = None
    metadata: dict[str, Any] = Field(default={})


class ResponseEvent(Delta):
    """An event of a stream, with the fields that its type has."""

    type: str
    sequence_number: int
    response: ModelResponse | None = None
    output_index: int | None = None
    content_index: int | None = None
    item_id: str | None = None
    item: OutputMessage | FunctionCall | None = None
    part: OutputText | None = None
    delta: str | None = None
    text: str | None = None
    logprobs: list[Any] | None = None
    name: str | None = None
    arguments: str | None = None
