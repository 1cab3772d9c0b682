"""The wire format: every request and answer of the server, with bounds on all that a client may say.

The OpenAI routes take and give what that interface does, as far as a language model of ours can; what it
knows beyond (top_k, min_p, repetition_penalty, regex) has our names. The `/api` routes speak of models,
traces and sites. Matrices go as raw little-endian float32, their shape in the header X-Shape; in JSON,
numbers that are not finite are null. A list is left at the first thing in it that is wrong: to tell of each
of a million would take seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clearhead.model.config import Config

MOST_CHARACTERS = 200_000  # of a prompt, or of all messages of a conversation
MOST_TOKENS = 4096  # to write for one sample
MOST_SAMPLES = 16
MOST_PROMPTS = 16
MOST_MESSAGES = 512
MOST_STOPS = 16
MOST_BIASES = 1024
MOST_ALTERNATIVES = 20
MOST_EDITS = 256
MOST_TEXTS = 16  # that the edits of a trace patch from
MOST_READS = 64
MOST_VALUES = 2**24  # numbers of a matrix at once: 64 MB
MOST_JSON = 2**18  # as JSON, which takes far more time and room

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Served = Annotated[Name, Field(description="One of those that /v1/models lists.")]
SiteName = Annotated[
    Name, Field(description="As /api/trace lists them.", examples=["block.0.head.0.weights"])
]
WeightName = Annotated[Name, Field(description="Such as the README lists.", examples=["block.0.head.0.W_Q"])]
Text = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Id = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
Ids = Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_CHARACTERS)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
Index = Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)]
Range = Annotated[tuple[Index, Index], Field(strict=False)]  # which JSON writes as a list


class Wire(BaseModel):
    """Numbers are finite, and neither texts nor true and false."""

    model_config = ConfigDict(
        strict=True,
        allow_inf_nan=False,
        extra="ignore",
        protected_namespaces=(),
        json_schema_serialization_defaults_required=True,  # an answer has all its fields
    )


class Asked(Wire):
    """A request: a field that is not known may be meant to change the answer, so it is refused."""

    model_config = ConfigDict(extra="forbid")


class Fault(Wire):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Refusal(Wire):
    """Every answer that is not what was asked for, in OpenAI's shape."""

    error: Fault


# What a client asks for.


class SchemaFormat(Wire):
    name: str | None = None
    json_schema: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(Wire):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class Drawing(Asked):
    """How words are drawn: what both OpenAI routes share."""

    temperature: Annotated[float, Field(ge=0, le=100)] | None = Field(
        1.0, description="At 0 the likeliest word is taken each time."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] = Field(
        1.0, description="What logits of words that were there already, in the prompt too, are divided by."
    )
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = 0.0
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = 0.0
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(pattern=r"^\d{1,9}$")],
                Annotated[float, Field(ge=-100, le=100)],
            ],
            Field(fail_fast=True, max_length=MOST_BIASES),
        ]
        | None
    ) = Field(
        None,
        description="What is added to the logits of tokens, by their ids; -100 is never.",
        examples=[{"50256": -100}],
    )
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = Field(
        None, description="The same seed gives the same text. Without one, another each time."
    )
    stop: Stop | Annotated[list[Stop], Field(fail_fast=True, max_length=MOST_STOPS)] | None = Field(
        None, description="The text ends before the first of these."
    )
    n: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] | None = Field(
        1, description=f"How many texts; for all prompts together at most {MOST_SAMPLES}."
    )
    regex: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] | None = Field(
        None,
        description="A regular expression, as Rust has them, that the text matches as a whole.",
        examples=["(yes|no)"],
    )
    response_format: ResponseFormat | None = None
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        None, description="After so long the text ends where it is."
    )


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


class CompletionRequest(Drawing, Streaming, Ignored):
    """Go on from a text."""

    model: Served
    prompt: (
        Text | Ids | Annotated[list[Text | Ids], Field(fail_fast=True, min_length=1, max_length=MOST_PROMPTS)]
    ) = Field(description="A text, or its tokens' ids; or several of either.", examples=["Once upon a time"])
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = 16
    logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = Field(
        None, description="Tell log-probabilities, with so many of the likeliest tokens at each place."
    )
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


class ChatRequest(Drawing, Streaming, Ignored):
    """Go on with a conversation, as the model's own template writes it."""

    model: Served
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=MOST_MESSAGES)]
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="The newer name of max_tokens, and stronger."
    )
    logprobs: bool | None = Field(False, description="Whether to tell log-probabilities.")
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = Field(None, description="Not offered.")


class EditRequest(Asked):
    """What to put at a site: one of a value, a factor for what is there, or what is there in another text."""

    site: SiteName
    value: Number | Numbers | Annotated[list[Numbers], Field(fail_fast=True)] | None = Field(
        None, description="One number for all that is there, or as many as there are."
    )
    scale: Number | None = Field(None, description="What is there, so many times.")
    text: Text | None = Field(
        None,
        description=f"What stands there in another text; at most {MOST_TEXTS} different ones in a request.",
    )
    at: Annotated[list[Index], Field(fail_fast=True, min_length=1, max_length=MOST_CHARACTERS)] | None = (
        Field(None, description="The positions to change, counted from 0 or back from -1; all unless said.")
    )


class TextRequest(Asked):
    """A text through a model, with some of what it computes changed."""

    model: Served
    text: Text | Ids = Field(
        description="A text, or its tokens' ids.", examples=["The duck crossed the road"]
    )
    edits: Annotated[list[EditRequest], Field(fail_fast=True, max_length=MOST_EDITS)] = Field(
        [], description="In force all together; of two at one site the later sees what the earlier gave."
    )


class TraceRequest(TextRequest):
    """What comes next, and what can be looked at."""

    count: Annotated[int, Field(ge=1, le=1000)] = Field(10, description="How many of the likeliest words.")
    sites: bool = Field(True, description="Whether to list every site; there are many.")


class Slice(Asked):
    """Rows and columns from a first one up to, and without, a last one; all unless said."""

    rows: Range | None = Field(None, examples=[[0, 5]])
    columns: Range | None = None


class SiteRequest(TextRequest, Slice):
    """What stands at one site."""

    site: SiteName


class Read(Slice):
    """A slice of one site, or of one weight."""

    site: SiteName | None = None
    weight: WeightName | None = None


class SitesRequest(TextRequest):
    """Several slices at once."""

    reads: Annotated[list[Read], Field(fail_fast=True, min_length=1, max_length=MOST_READS)]


class PatternsRequest(TextRequest):
    """The attention weights of all heads of some blocks, made small."""

    blocks: Range | None = Field(None, description="From a first to, and without, a last; all unless said.")
    cells: Annotated[int, Field(ge=1, le=64)] = Field(24, description="At most so many a side.")


class WeightRequest(Slice):
    """A weight by its name."""

    model: Served
    name: WeightName


class TokensRequest(Asked):
    """A text to be cut into tokens."""

    model: Served
    text: Text


class OpenRequest(Asked):
    """A model to be loaded."""

    model: Annotated[Name, Field(description="One of those that /api/models lists.")]


class PullRequest(Asked):
    """A model to be pulled."""

    name: Annotated[Name, Field(description="One of those that /api/models says can be pulled.")]


class HeadsRequest(Asked):
    """What each head of a model does."""

    model: Served


# What it is given.


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


class ModelDetails(Wire):
    """A model as we know it. One that is not loaded is, when it is opened; `error` says why it was not."""

    name: str
    state: Literal["loaded", "loading", "not loaded", "failed"]
    origin: Literal["run", "pulled", "file"] = Field(
        description="Trained here, pulled, or a folder or file from elsewhere."
    )
    error: str | None = None
    parameters: int | None = None
    config: Config | None = None
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


class TokensAnswer(Wire):
    ids: list[int]
    tokens: list[str]


class NextWord(Wire):
    id: int
    text: str
    logit: float | None
    probability: float | None


class SiteShape(Wire):
    name: str
    shape: list[int]


class TraceAnswer(Wire):
    """The text as the model reads it, what may come next, and every site that can be asked for."""

    ids: list[int]
    text: str = Field(description="What the ids say, without tokens that have no text.")
    tokens: list[str]
    next: list[NextWord]
    sites: list[SiteShape]


class Matrix(Wire):
    """Numbers as JSON, for who asks for it; those that are not finite are null."""

    shape: list[int]
    values: list[float | None] | list[list[float | None]]
