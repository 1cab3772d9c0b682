"""The schemas of the OpenAI routes, limited to what is supported.

Extensions such as top_k, min_p, repetition_penalty and regex use the names of the Python options.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import MAX_CHARACTERS, Delta, Ids, ModelName, RequestModel, Text, WireModel
from clearhead.api.tools import MAX_TOOLS, ReplyCall, ToolCall, ToolCallDelta, ToolChoice, Tools
from clearhead.generate.sampling import OPTIONS
from clearhead.inspect.text_vectors import Pooling

MAX_TOKENS = 4096  # per generated sample, if the request does not say how many
MAX_SAMPLES = 128
MAX_PROMPTS = 128
MAX_MESSAGES = 512
MAX_INPUTS = 2048  # in a request for embeddings
MAX_STOPS = 16
MAX_BIASES = 1024
TEMPERATURE = 1.0  # OpenAI's default
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class SchemaFormat(WireModel):
    name: str | None = None
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(WireModel):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


def limits(name: str, **other: float | None) -> Any:
    """Return the limits of a generation option; the `other` limits for clients take precedence."""
    option = OPTIONS[name]
    declared: dict[str, Any] = {"ge": option.minimum, "gt": option.above, "le": option.maximum}
    return Field(**{**declared, **other})


def described(name: str, default: Any = ..., note: str = "", **settings: Any) -> Any:
    """Return a field with the default and the help text of a generation option."""
    option = OPTIONS[name]
    return Field(
        option.default if default is ... else default, description=f"{option.help}{note}", **settings
    )


class SamplingFields(RequestModel):
    """The sampling options that both OpenAI routes share."""

    temperature: Annotated[float, limits("temperature")] | None = described("temperature", TEMPERATURE)
    top_p: Annotated[float, limits("top_p", ge=0, gt=None)] | None = described(
        "top_p", note=" 0 means greedy decoding."
    )
    top_k: Annotated[int, limits("top_k", lt=2**31)] | None = described("top_k")
    min_p: Annotated[float, limits("min_p")] | None = described("min_p")
    repetition_penalty: Annotated[float, limits("repetition_penalty")] = described("repetition_penalty")
    presence_penalty: Annotated[float, limits("presence_penalty")] | None = described("presence_penalty")
    frequency_penalty: Annotated[float, limits("frequency_penalty")] | None = described("frequency_penalty")
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(pattern=r"^\d{1,9}$")],
                Annotated[float, limits("logit_bias")],
            ],
            Field(fail_fast=True, max_length=MAX_BIASES),
        ]
        | None
    ) = described("logit_bias", note=" The keys are token ids.", examples=[{"50256": -100}])
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = described(
        "seed", None, note=" Without a seed, the text differs each time."
    )
    stop: Stop | Annotated[list[Stop], Field(fail_fast=True, max_length=MAX_STOPS)] | None = described(
        "stop", note=" With several strings, the first to occur ends the text."
    )
    n: Annotated[int, limits("samples", le=MAX_SAMPLES)] | None = described(
        "samples", note=f" At most {MAX_SAMPLES} for all prompts together."
    )
    regex: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] | None = described(
        "regex", note=" Uses Rust's regex syntax.", examples=["(yes|no)"]
    )
    response_format: ResponseFormat | None = None
    seconds: Annotated[float, limits("seconds", le=3600)] | None = described("seconds")


class StreamOptions(WireModel):
    include_usage: bool = False


class Ignored(RequestModel):
    """Fields that OpenAI's clients send for OpenAI's bookkeeping or models; they are accepted and ignored."""

    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    prompt_cache_options: Any = None
    parallel_tool_calls: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
    prediction: Any = None
    modalities: list[Literal["text"]] | None = None


class Streaming(RequestModel):
    stream: bool | None = Field(False, description="Whether to stream the text as server-sent events.")
    stream_options: StreamOptions | None = None


class CompletionRequest(SamplingFields, Streaming, Ignored):
    """A prompt to continue."""

    model: ModelName
    prompt: (
        Text | Ids | Annotated[list[Text | Ids], Field(fail_fast=True, min_length=1, max_length=MAX_PROMPTS)]
    ) = Field(description="A text, token ids, or a list of either.", examples=["Once upon a time"])
    max_tokens: Annotated[int, limits("tokens", ge=0, lt=2**31)] | None = described(
        "tokens", 16, note=" With 0 and echo, only the prompt is returned."
    )
    logprobs: Annotated[int, limits("log_probabilities")] | None = described("log_probabilities")
    echo: bool | None = Field(
        False, description="Whether to return the prompt too, with its log-probabilities if requested."
    )
    best_of: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] | None = Field(
        None, description="Not supported: must be null or equal to n."
    )
    suffix: Literal[""] | None = Field(None, description="Not supported.")


class TextPart(WireModel):
    type: Literal["text"]
    text: Text


class Message(WireModel):
    role: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description=(
            "A role that the model's chat template supports, such as user, assistant or system; developer is another "
            "name for system."
        ),
        examples=["user"],
    )
    content: Text | Annotated[list[TextPart], Field(fail_fast=True, max_length=64)] | None = Field(
        None, description="Required, except for an assistant message with tool calls."
    )
    tool_calls: Annotated[list[ToolCall], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None, description="The calls in an assistant's message."
    )
    tool_call_id: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="For the role tool: the call whose result this is."
    )


class ChatRequest(SamplingFields, Streaming, Ignored):
    """A conversation to continue, formatted with the model's chat template or, without one, as plain text."""

    model: ModelName
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)]
    max_tokens: Annotated[int, limits("tokens", lt=2**31)] | None = described("tokens", None)
    max_completion_tokens: Annotated[int, limits("tokens", lt=2**31)] | None = Field(
        None, description="The newer name for max_tokens; it takes precedence."
    )
    logprobs: bool | None = Field(False, description="Whether to return log-probabilities.")
    top_logprobs: Annotated[int, limits("log_probabilities")] | None = None
    tools: Tools | None = Field(None, description="Functions that the model may call, one per reply.")
    tool_choice: ToolChoice | None = Field(
        None,
        description="Whether the model must or may call a function, and which; `auto` if there are tools.",
    )


class Usage(WireModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionLogprobs(WireModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None] | None]
    text_offset: list[int]


class CompletionChoice(WireModel):
    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Completion(WireModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class Alternative(WireModel):
    token: str
    logprob: float | None
    bytes: list[int] | None


class TokenLogprob(Alternative):
    top_logprobs: list[Alternative]


class ChatLogprobs(WireModel):
    content: list[TokenLogprob]


class Reply(WireModel):
    role: Literal["assistant"] = "assistant"
    content: str | None
    tool_calls: list[ReplyCall] | None = None


ChatFinishReason = Literal["stop", "length", "tool_calls"]


class ChatChoice(WireModel):
    index: int
    message: Reply
    logprobs: ChatLogprobs | None = None
    finish_reason: ChatFinishReason | None = None


class ChatCompletion(WireModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage | None = None


class MessageDelta(Delta):
    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChatChunkChoice(WireModel):
    index: int
    delta: MessageDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: ChatFinishReason | None = None


class ChatChunk(WireModel):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None


Input = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CHARACTERS)]


class EmbeddingRequest(RequestModel):
    """Texts to embed."""

    model: ModelName
    input: (
        Input | Ids | Annotated[list[Input | Ids], Field(fail_fast=True, min_length=1, max_length=MAX_INPUTS)]
    ) = Field(description="A text, token ids, or a list of either.", examples=["Once upon a time"])
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="Whether the vectors are lists of numbers, or little-endian float32 in base64."
    )
    pooling: Pooling | None = Field(
        "mean",
        description="Whether a text's vector is the mean of its tokens' vectors, or that of the last token.",
    )
    dimensions: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Not supported: must be null or the model's width."
    )
    user: Any = Field(None, description="Ignored.")


class Embedding(WireModel):
    index: int
    object: Literal["embedding"] = "embedding"
    embedding: list[float] | str


class EmbeddingUsage(WireModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(WireModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


class Model(WireModel):
    """A loaded model, in OpenAI's format."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "clearhead"


class ModelList(WireModel):
    object: Literal["list"] = "list"
    data: list[Model]
