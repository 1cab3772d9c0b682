"""The OpenAI routes: models, completions and chat, at once or as a stream."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from clearhead.api import base, openai
from clearhead.errors import UserError
from clearhead.generate.request import Event
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import EventStream, in_thread, until_disconnect
from clearhead.server.errors import APIError
from clearhead.server.generation import FINISH, Choice, GenerationJob, check_one, make_requests
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.responses import OF_A_MODEL, events_of


def make_router(registry: ModelRegistry, metrics: ServerMetrics) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])
    # A chat template is filled in by a process of its own. More of these than there are processors would only
    # take from each other the time that each may have, and threads from everyone else; those of one model,
    # which may be made to never end, must not be in the way of another's.
    templates: defaultdict[str, asyncio.Semaphore] = defaultdict(
        lambda: asyncio.Semaphore(os.cpu_count() or 1)
    )

    @router.get("/models")
    async def list_models() -> openai.ModelList:
        """The models that are loaded."""
        return openai.ModelList(
            data=[openai.Model(id=each.name) for each in registry if each.model is not None]
        )

    @router.get("/models/{model}", responses=OF_A_MODEL)
    async def show_model(model: base.ModelName) -> openai.Model:
        """One of them."""
        registry.model(model)
        return openai.Model(id=model)

    @router.post("/completions", responses=events_of(openai.Completion))
    async def complete(request: Request, body: openai.CompletionRequest) -> openai.Completion:
        """What the model writes after a text."""
        model = registry.model(body.model)
        if body.echo:
            raise APIError(400, "invalid_request", "echo is not offered", "echo")
        if body.best_of not in (None, body.n or 1):
            raise APIError(400, "invalid_request", "best_of other than n is not offered", "best_of")
        schema = _schema(body.response_format)
        check_one({"regex": body.regex, "response_format": schema})
        engine = registry.engine(body.model)

        def read(_: threading.Event) -> list[list[int]]:
            return [_prompt_ids(model, prompt) for prompt in _prompts(body.prompt)]

        # Nobody else should wait while a long text is cut into tokens.
        prompts = await until_disconnect(request, in_thread(read))
        job = GenerationJob(make_requests(model, prompts, body, body.max_tokens or 16, body.logprobs, schema))
        await until_disconnect(request, job.begin(engine))
        return await _answer(request, body, job, CompletionBuilder(model, body), metrics)

    @router.post("/chat/completions", responses=events_of(openai.ChatChunk))
    async def chat(request: Request, body: openai.ChatRequest) -> openai.ChatCompletion:
        """What the model replies, by its own chat template."""
        model, engine = registry.model(body.model), registry.engine(body.model)
        if body.top_logprobs is not None and not body.logprobs:
            raise APIError(400, "invalid_request", "top_logprobs: only with logprobs", "top_logprobs")
        schema = _schema(body.response_format)
        check_one({"regex": body.regex, "response_format": schema})
        messages = [{"role": each.role, "content": _content(each)} for each in body.messages]
        if sum(len(message["content"]) for message in messages) > base.MOST_CHARACTERS:
            raise APIError(
                400, "too_large", f"the messages have over {base.MOST_CHARACTERS:,} characters", "messages"
            )
        engine.check_capacity()

        async def read() -> list[int]:
            async with templates[body.model]:
                return await in_thread(lambda _: model.chat_ids(messages))

        ids = await until_disconnect(request, read())
        told = body.top_logprobs or 0 if body.logprobs else None
        tokens = body.max_completion_tokens or body.max_tokens
        job = GenerationJob(make_requests(model, [ids], body, tokens, told, schema))
        await until_disconnect(request, job.begin(engine))
        return await _answer(request, body, job, ChatBuilder(model, body), metrics)

    return router


def _prompts(given: Any) -> list[Any]:
    """One text, or ids, or several of either."""
    return [given] if isinstance(given, str) or isinstance(given[0], int) else given


def _prompt_ids(model: LanguageModel, prompt: str | list[int]) -> list[int]:
    if isinstance(prompt, list):
        return prompt
    tokenizer = model.tokenizer
    return (tokenizer.start_ids + tokenizer.encode(prompt)) or tokenizer.start_ids or [tokenizer.end_id]


def _content(message: openai.Message) -> str:
    parts = message.content or ""
    return parts if isinstance(parts, str) else "".join(part.text for part in parts)


def _schema(body: openai.ResponseFormat | None) -> Any:
    if body is None or body.type == "text":
        return None
    if body.type == "json_object":
        return {"type": "object"}
    if body.json_schema is None:
        raise UserError("response_format of json_schema: expected a json_schema with a schema in it")
    return body.json_schema.json_schema


async def _answer(
    request: Request,
    body: openai.Streaming,
    job: GenerationJob,
    answer: ResponseBuilder,
    metrics: ServerMetrics,
) -> Any:
    def note() -> None:
        usage = job.usage()
        metrics.tokens.labels("read").inc(usage.prompt_tokens)
        metrics.tokens.labels("written").inc(usage.completion_tokens)
        request.state.noted = (
            f" {answer.head['model']} {usage.prompt_tokens} read {usage.completion_tokens} written"
        )

    if not body.stream:
        try:
            choices = await until_disconnect(request, job.finish())
        finally:
            note()
        return answer.whole(choices, job.usage())
    with_usage = body.stream_options is not None and body.stream_options.include_usage

    async def events() -> AsyncGenerator[str]:
        try:
            for first in answer.begin(len(job.choices)):
                yield _event(first)
            async for number, event in job.events():
                chunk = answer.chunk(number, event)
                if chunk is not None:
                    yield _event(chunk)
            if with_usage:
                yield _event(answer.usage(job.usage()))
            yield "data: [DONE]\n\n"
        except UserError as error:
            fault = base.Fault(message=str(error), type="invalid_request_error", code="invalid_request")
            yield _event(base.Refusal(error=fault))
        finally:
            note()

    return EventStream(events(), job.cancel)


def _event(chunk: BaseModel) -> str:
    return f"data: {json.dumps(chunk.model_dump(), allow_nan=False)}\n\n"


class ResponseBuilder(ABC):
    """How choices look on one of the routes."""

    kind: str

    def __init__(self, model: LanguageModel, body: Any) -> None:
        self.model, self.body = model, body
        self.head: dict[str, Any] = {
            "id": f"{self.kind}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,
        }

    def begin(self, _: int) -> list[BaseModel]:
        return []

    def token(self, i: int) -> str:
        return self.model.tokenizer.pieces([i])[0]

    @abstractmethod
    def whole(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        """All choices, written to their ends."""

    @abstractmethod
    def chunk(self, number: int, event: Event) -> BaseModel | None:
        """One more word of one of them; none where there is nothing to tell yet."""

    @abstractmethod
    def usage(self, usage: openai.Usage) -> BaseModel:
        """The last of a stream, for who asks for it."""


class CompletionBuilder(ResponseBuilder):
    kind = "cmpl"

    def __init__(self, model: LanguageModel, body: openai.CompletionRequest) -> None:
        super().__init__(model, body)
        self.lengths: dict[int, int] = {}  # of each choice's tokens so far

    def whole(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = [
            openai.CompletionChoice(
                index=i, text=each.text, logprobs=self._logprobs(i, each.events), finish_reason=each.finish
            )
            for i, each in enumerate(choices)
        ]
        return openai.Completion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        if not event.text and event.finish_reason is None and self.body.logprobs is None:
            return None
        choice = openai.CompletionChoice(
            index=number,
            text=event.text,
            logprobs=self._logprobs(number, [event]),
            finish_reason=FINISH.get(event.finish_reason or ""),
        )
        return openai.Completion(**self.head, choices=[choice])

    def usage(self, usage: openai.Usage) -> BaseModel:
        return openai.Completion(**self.head, choices=[], usage=usage)

    def _logprobs(self, number: int, events: list[Event]) -> openai.CompletionLogprobs | None:
        if self.body.logprobs is None:
            return None
        told = openai.CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for event in events:
            if event.token is None:
                continue
            told.text_offset.append(self.lengths.get(number, 0))
            token = self.token(event.token.id)
            self.lengths[number] = told.text_offset[-1] + len(token)
            told.tokens.append(token)
            told.token_logprobs.append(_finite(event.token.log_probability))
            told.top_logprobs.append({self.token(i): _finite(p) for i, p in event.token.alternatives})
        return told


class ChatBuilder(ResponseBuilder):
    kind = "chatcmpl"

    def begin(self, count: int) -> list[BaseModel]:
        delta = openai.Delta(role="assistant", content="")
        return [
            openai.ChatChunk(**self.head, choices=[openai.ChatChunkChoice(index=i, delta=delta)])
            for i in range(count)
        ]

    def whole(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = [
            openai.ChatChoice(
                index=i,
                message=openai.Reply(content=each.text),
                logprobs=self._logprobs(each.events),
                finish_reason=each.finish,
            )
            for i, each in enumerate(choices)
        ]
        return openai.ChatCompletion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        if not event.text and event.finish_reason is None and not self.body.logprobs:
            return None
        choice = openai.ChatChunkChoice(
            index=number,
            delta=openai.Delta(content=event.text) if event.text else openai.Delta(),
            logprobs=self._logprobs([event]),
            finish_reason=FINISH.get(event.finish_reason or ""),
        )
        return openai.ChatChunk(**self.head, choices=[choice])

    def usage(self, usage: openai.Usage) -> BaseModel:
        return openai.ChatChunk(**self.head, choices=[], usage=usage)

    def _logprobs(self, events: list[Event]) -> openai.ChatLogprobs | None:
        if not self.body.logprobs:
            return None
        return openai.ChatLogprobs(
            content=[
                openai.TokenLogprob(
                    **self._one(event.token.id, event.token.log_probability),
                    top_logprobs=[openai.Alternative(**self._one(i, p)) for i, p in event.token.alternatives],
                )
                for event in events
                if event.token is not None
            ]
        )

    def _one(self, i: int, log_probability: float | None) -> dict[str, Any]:
        """With the bytes that it adds to a text: they may be a part of a character."""
        tokenizer = self.model.tokenizer
        spelled = list(tokenizer.spell(i)) if tokenizer.has_text(i) else None
        return {"token": self.token(i), "logprob": _finite(log_probability), "bytes": spelled}


def _finite(number: float | None) -> float | None:
    return number if number is not None and -1e30 < number < 1e30 else None
