"""The OpenAI routes: models, completions and chat completions, with and without streaming."""

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
from clearhead.server.generation import (
    FINISH_REASONS,
    Choice,
    GenerationJob,
    check_exclusive,
    make_requests,
)
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.responses import MODEL_ERRORS, streaming_responses


def make_router(registry: ModelRegistry, metrics: ServerMetrics) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])
    # Each chat template is rendered in a process of its own. More processes than cores would only slow each
    # other down and occupy worker threads. The limit is per model, because a malicious template may run
    # until its timeout.
    templates: defaultdict[str, asyncio.Semaphore] = defaultdict(
        lambda: asyncio.Semaphore(os.cpu_count() or 1)
    )

    @router.get("/models")
    async def list_models() -> openai.ModelList:
        """List the loaded models."""
        return openai.ModelList(
            data=[openai.Model(id=each.name) for each in registry if each.model is not None]
        )

    @router.get("/models/{model}", responses=MODEL_ERRORS)
    async def show_model(model: base.ModelName) -> openai.Model:
        """Return one of the loaded models."""
        registry.model(model)
        return openai.Model(id=model)

    @router.post("/completions", responses=streaming_responses(openai.Completion))
    async def complete(request: Request, body: openai.CompletionRequest) -> openai.Completion:
        """Continue a prompt."""
        model = registry.model(body.model)
        if body.echo:
            raise APIError(400, "invalid_request", "echo: not supported", "echo")
        if body.best_of not in (None, body.n or 1):
            raise APIError(400, "invalid_request", "best_of: not supported unless equal to n", "best_of")
        schema = _json_schema(body.response_format)
        check_exclusive({"regex": body.regex, "response_format": schema})
        engine = registry.engine(body.model)

        def tokenize(_: threading.Event) -> list[list[int]]:
            return [_prompt_ids(model, prompt) for prompt in _list_prompts(body.prompt)]

        # In a worker thread: tokenizing a long text must not block the event loop.
        prompts = await until_disconnect(request, in_thread(tokenize))
        job = GenerationJob(make_requests(model, prompts, body, body.max_tokens or 16, body.logprobs, schema))
        await until_disconnect(request, job.submit(engine))
        return await _respond(request, body, job, CompletionBuilder(model, body), metrics)

    @router.post("/chat/completions", responses=streaming_responses(openai.ChatChunk))
    async def chat(request: Request, body: openai.ChatRequest) -> openai.ChatCompletion:
        """Reply to a conversation, formatted with the model's chat template."""
        model, engine = registry.model(body.model), registry.engine(body.model)
        if body.top_logprobs is not None and not body.logprobs:
            raise APIError(400, "invalid_request", "top_logprobs: requires logprobs", "top_logprobs")
        schema = _json_schema(body.response_format)
        check_exclusive({"regex": body.regex, "response_format": schema})
        messages = [{"role": each.role, "content": _content(each)} for each in body.messages]
        if sum(len(message["content"]) for message in messages) > base.MAX_CHARACTERS:
            raise APIError(
                400,
                "too_large",
                f"the messages have more than {base.MAX_CHARACTERS:,} characters in all",
                "messages",
            )
        engine.check_capacity()

        async def render() -> list[int]:
            async with templates[body.model]:
                return await in_thread(lambda _: model.chat_ids(messages))

        ids = await until_disconnect(request, render())
        alternatives = body.top_logprobs or 0 if body.logprobs else None
        tokens = body.max_completion_tokens or body.max_tokens
        job = GenerationJob(make_requests(model, [ids], body, tokens, alternatives, schema))
        await until_disconnect(request, job.submit(engine))
        return await _respond(request, body, job, ChatBuilder(model, body), metrics)

    return router


def _list_prompts(prompt: Any) -> list[Any]:
    """Return the prompts as a list: `prompt` is a text, token ids, or a list of either."""
    return [prompt] if isinstance(prompt, str) or isinstance(prompt[0], int) else prompt


def _prompt_ids(model: LanguageModel, prompt: str | list[int]) -> list[int]:
    if isinstance(prompt, list):
        return prompt
    tokenizer = model.tokenizer
    return (tokenizer.start_ids + tokenizer.encode(prompt)) or tokenizer.start_ids or [tokenizer.end_id]


def _content(message: openai.Message) -> str:
    parts = message.content or ""
    return parts if isinstance(parts, str) else "".join(part.text for part in parts)


def _json_schema(response_format: openai.ResponseFormat | None) -> Any:
    if response_format is None or response_format.type == "text":
        return None
    if response_format.type == "json_object":
        return {"type": "object"}
    if response_format.json_schema is None:
        raise UserError("response_format of type json_schema: expected a json_schema with a schema in it")
    return response_format.json_schema.json_schema


async def _respond(
    request: Request,
    body: openai.Streaming,
    job: GenerationJob,
    builder: ResponseBuilder,
    metrics: ServerMetrics,
) -> Any:
    """Return the complete response, or a stream of events if the request asks for one."""

    def record_usage() -> None:
        usage = job.usage()
        metrics.tokens.labels("prompt").inc(usage.prompt_tokens)
        metrics.tokens.labels("completion").inc(usage.completion_tokens)
        counts = f"{usage.prompt_tokens} prompt {usage.completion_tokens} completion tokens"
        request.state.log_details = f" {builder.head['model']} {counts}"

    if not body.stream:
        try:
            choices = await until_disconnect(request, job.finish())
        finally:
            record_usage()
        return builder.response(choices, job.usage())
    with_usage = body.stream_options is not None and body.stream_options.include_usage

    async def events() -> AsyncGenerator[str]:
        try:
            for chunk in builder.first_chunks(len(job.choices)):
                yield _event(chunk)
            async for number, event in job.events():
                next_chunk = builder.chunk(number, event)
                if next_chunk is not None:
                    yield _event(next_chunk)
            if with_usage:
                yield _event(builder.usage_chunk(job.usage()))
            yield "data: [DONE]\n\n"
        except UserError as error:
            detail = base.ErrorDetail(
                message=str(error), type="invalid_request_error", code="invalid_request"
            )
            yield _event(base.ErrorResponse(error=detail))
        finally:
            record_usage()

    return EventStream(events(), job.cancel)


def _event(data: BaseModel) -> str:
    return f"data: {json.dumps(data.model_dump(), allow_nan=False)}\n\n"


class ResponseBuilder(ABC):
    """Builds the responses and chunks of one of the two routes."""

    id_prefix: str

    def __init__(self, model: LanguageModel, body: Any) -> None:
        self.model, self.body = model, body
        self.head: dict[str, Any] = {
            "id": f"{self.id_prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,
        }

    def first_chunks(self, _: int) -> list[BaseModel]:
        """Return the chunks sent before any token, for this number of choices."""
        return []

    def token_text(self, i: int) -> str:
        return self.model.tokenizer.pieces([i])[0]

    @abstractmethod
    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        """Return the complete response."""

    @abstractmethod
    def chunk(self, number: int, event: Event) -> BaseModel | None:
        """Return the chunk for the next token of a choice, or None if there is nothing to send yet."""

    @abstractmethod
    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        """Return the last chunk of a stream that reports its usage."""


class CompletionBuilder(ResponseBuilder):
    id_prefix = "cmpl"

    def __init__(self, model: LanguageModel, body: openai.CompletionRequest) -> None:
        super().__init__(model, body)
        self.lengths: dict[int, int] = {}  # characters of each choice's tokens so far

    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = [
            openai.CompletionChoice(
                index=i,
                text=choice.text,
                logprobs=self._logprobs(i, choice.events),
                finish_reason=choice.finish_reason,
            )
            for i, choice in enumerate(choices)
        ]
        return openai.Completion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        if not event.text and event.finish_reason is None and self.body.logprobs is None:
            return None
        choice = openai.CompletionChoice(
            index=number,
            text=event.text,
            logprobs=self._logprobs(number, [event]),
            finish_reason=FINISH_REASONS.get(event.finish_reason or ""),
        )
        return openai.Completion(**self.head, choices=[choice])

    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        return openai.Completion(**self.head, choices=[], usage=usage)

    def _logprobs(self, number: int, events: list[Event]) -> openai.CompletionLogprobs | None:
        if self.body.logprobs is None:
            return None
        logprobs = openai.CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for event in events:
            if event.token is None:
                continue
            logprobs.text_offset.append(self.lengths.get(number, 0))
            text = self.token_text(event.token.id)
            self.lengths[number] = logprobs.text_offset[-1] + len(text)
            logprobs.tokens.append(text)
            logprobs.token_logprobs.append(_finite(event.token.log_probability))
            logprobs.top_logprobs.append(
                {self.token_text(i): _finite(p) for i, p in event.token.alternatives}
            )
        return logprobs


class ChatBuilder(ResponseBuilder):
    id_prefix = "chatcmpl"

    def first_chunks(self, count: int) -> list[BaseModel]:
        delta = openai.Delta(role="assistant", content="")
        return [
            openai.ChatChunk(**self.head, choices=[openai.ChatChunkChoice(index=i, delta=delta)])
            for i in range(count)
        ]

    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = [
            openai.ChatChoice(
                index=i,
                message=openai.Reply(content=choice.text),
                logprobs=self._logprobs(choice.events),
                finish_reason=choice.finish_reason,
            )
            for i, choice in enumerate(choices)
        ]
        return openai.ChatCompletion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        if not event.text and event.finish_reason is None and not self.body.logprobs:
            return None
        choice = openai.ChatChunkChoice(
            index=number,
            delta=openai.Delta(content=event.text) if event.text else openai.Delta(),
            logprobs=self._logprobs([event]),
            finish_reason=FINISH_REASONS.get(event.finish_reason or ""),
        )
        return openai.ChatChunk(**self.head, choices=[choice])

    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        return openai.ChatChunk(**self.head, choices=[], usage=usage)

    def _logprobs(self, events: list[Event]) -> openai.ChatLogprobs | None:
        if not self.body.logprobs:
            return None
        return openai.ChatLogprobs(
            content=[
                openai.TokenLogprob(
                    **self._token(event.token.id, event.token.log_probability),
                    top_logprobs=[
                        openai.Alternative(**self._token(i, p)) for i, p in event.token.alternatives
                    ],
                )
                for event in events
                if event.token is not None
            ]
        )

    def _token(self, i: int, log_probability: float | None) -> dict[str, Any]:
        """Return a token with its bytes, which may be part of a character."""
        tokenizer = self.model.tokenizer
        spelled = list(tokenizer.spell(i)) if tokenizer.has_text(i) else None
        return {"token": self.token_text(i), "logprob": _finite(log_probability), "bytes": spelled}


def _finite(number: float | None) -> float | None:
    return number if number is not None and -1e30 < number < 1e30 else None
