"""The OpenAI routes: they take and give what that interface does, as far as a language model of ours can.

What we know beyond it (top_k, min_p, repetition_penalty, regex) has our names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Asked, Ids, ModelName, Text, Wire
from clearhead.generate.sampling import OPTIONS

MOST_TOKENS = 4096  # to write for one sample
MOST_SAMPLES = 16
MOST_PROMPTS = 16
MOST_MESSAGES = 512
MOST_STOPS = 16
MOST_BIASES = 1024
TEMPERATURE = 1.0  # the default of OpenAI's interface
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class SchemaFormat(Wire):
    name: str | None = None
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(Wire):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


def limits(name: str, **tighter: float) -> Any:
    """Return the limits of an option of generation; `tighter` ones bound what a client may send."""
    option = OPTIONS[name]
    declared: dict[str, Any] = {"ge": option.minimum, "gt": option.above, "le": option.maximum}
    return Field(**{**declared, **tighter})


def described(name: str, default: Any = ..., note: str = "", **settings: Any) -> Any:
    """Return a field with the default and the help text of an option of generation."""
    option = OPTIONS[name]
    return Field(
        option.default if default is ... else default, description=f"{option.help}{note}", **settings
    )


class SamplingFields(Asked):
    """The sampling options that both OpenAI routes share."""

    temperature: Annotated[float, limits("temperature", le=100)] | None = described(
        "temperature", TEMPERATURE
    )
    top_p: Annotated[float, limits("top_p")] | None = described("top_p")
    top_k: Annotated[int, limits("top_k", lt=2**31)] | None = described("top_k")
    min_p: Annotated[float, limits("min_p")] | None = described("min_p")
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] = described("repetition_penalty")
    presence_penalty: Annotated[float, limits("presence_penalty")] | None = described("presence_penalty")
    frequency_penalty: Annotated[float, limits("frequency_penalty")] | None = described("frequency_penalty")
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(pattern=r"^\d{1,9}$")],
                Annotated[float, limits("logit_bias")],
            ],
            Field(fail_fast=True, max_length=MOST_BIASES),
        ]
        | None
    ) = described("logit_bias", note=" The keys are token ids.", examples=[{"50256": -100}])
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = described(
        "seed", None, note=" Without a seed, the text differs each time."
    )
    stop: Stop | Annotated[list[Stop], Field(fail_fast=True, max_length=MOST_STOPS)] | None = described(
        "stop", note=" Of several strings, the first that occurs counts."
    )
    n: Annotated[int, limits("samples", le=MOST_SAMPLES)] | None = described(
        "samples", note=f" For all prompts together, at most {MOST_SAMPLES}."
    )
    regex: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] | None = described(
        "regex", note=" The syntax is that of Rust.", examples=["(yes|no)"]
    )
    response_format: ResponseFormat | None = None
    seconds: Annotated[float, limits("seconds", le=3600)] | None = described("seconds")


class StreamOptions(Wire):
    include_usage: bool = False


class Ignored(Asked):
    """What clients of OpenAI's send for its own books: taken, and left alone."""

    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    parallel_tool_calls: Any = None
    tool_choice: Literal["none", "auto"] | None = None


class Streaming(Asked):
    stream: bool | None = Field(False, description="Whether to send the text in events as it is written.")
    stream_options: StreamOptions | None = None


class CompletionRequest(SamplingFields, Streaming, Ignored):
    """Go on from a text."""

    model: ModelName
    prompt: (
        Text | Ids | Annotated[list[Text | Ids], Field(fail_fast=True, min_length=1, max_length=MOST_PROMPTS)]
    ) = Field(description="A text, or its tokens' ids; or several of either.", examples=["Once upon a time"])
    max_tokens: Annotated[int, limits("tokens", le=MOST_TOKENS)] | None = described("tokens", 16)
    logprobs: Annotated[int, limits("log_probabilities")] | None = described("log_probabilities")
    echo: bool | None = Field(False, description="Not offered: false, or nothing.")
    best_of: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | None = Field(
        None, description="Not offered: the same as n, or nothing."
    )
    suffix: Literal[""] | None = Field(None, description="Not offered.")


class TextPart(Wire):
    type: Literal["text"]
    text: Text


class Message(Wire):
    role: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="What the model's template knows, such as user, assistant and system.", examples=["user"]
    )
    content: Text | Annotated[list[TextPart], Field(fail_fast=True, max_length=64)] | None


class ChatRequest(SamplingFields, Streaming, Ignored):
    """Go on with a conversation, as the model's own template writes it."""

    model: ModelName
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=MOST_MESSAGES)]
    max_tokens: Annotated[int, limits("tokens", le=MOST_TOKENS)] | None = described("tokens", None)
    max_completion_tokens: Annotated[int, limits("tokens", le=MOST_TOKENS)] | None = Field(
        None, description="The newer name of max_tokens, and stronger."
    )
    logprobs: bool | None = Field(False, description="Whether to tell log-probabilities.")
    top_logprobs: Annotated[int, limits("log_probabilities")] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = Field(None, description="Not offered.")


class Usage(Wire):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionLogprobs(Wire):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None]]
    text_offset: list[int]


class CompletionChoice(Wire):
    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Completion(Wire):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class Alternative(Wire):
    token: str
    logprob: float | None
    bytes: list[int] | None


class TokenLogprob(Alternative):
    top_logprobs: list[Alternative]


class ChatLogprobs(Wire):
    content: list[TokenLogprob]


class Reply(Wire):
    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(Wire):
    index: int
    message: Reply
    logprobs: ChatLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class ChatCompletion(Wire):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage | None = None


class Delta(Wire):
    role: Literal["assistant"] | None = None
    content: str | None = None


class ChatChunkChoice(Wire):
    index: int
    delta: Delta
    logprobs: ChatLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class ChatChunk(Wire):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None


class Model(Wire):
    """One of the models that are served, as OpenAI lists them."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "clearhead"


class ModelList(Wire):
    object: Literal["list"] = "list"
    data: list[Model]
