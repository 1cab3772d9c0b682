"""The OpenAI routes: models, completions and chat completions, with and without streaming."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from clearhead.api import base, openai
from clearhead.errors import UserError
from clearhead.server.chat_prompts import ChatTemplates, json_schema, read_conversation
from clearhead.server.completion_builders import ChatBuilder, CompletionBuilder, ResponseBuilder
from clearhead.server.disconnect import EventStream, in_thread, until_disconnect
from clearhead.server.errors import APIError
from clearhead.server.generation import GenerationJob, check_exclusive, make_requests
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.prompts import list_prompts, prompt_ids, prompt_text
from clearhead.server.route_descriptions import MODEL_ERRORS, streaming_responses


def make_router(registry: ModelRegistry, metrics: ServerMetrics, templates: ChatTemplates) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])

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
        """Continue a prompt, return the log-probabilities of its tokens, or both."""
        model = registry.model(body.model)
        if body.best_of not in (None, body.n or 1):
            raise APIError(400, "invalid_request", "best_of: not supported unless equal to n", "best_of")
        schema = json_schema(body.response_format)
        check_exclusive({"regex": body.regex, "response_format": schema})
        engine = registry.engine(body.model)
        engine.check_capacity()
        given = list_prompts(body.prompt)

        def tokenize(_: threading.Event) -> list[list[int]]:
            return [prompt_ids(model, prompt) for prompt in given]

        # In a worker thread: tokenizing a long text must not block the event loop.
        prompts = await until_disconnect(request, in_thread(tokenize))
        tokens = 16 if body.max_tokens is None else body.max_tokens
        score_prompt = tokens == 0 or (bool(body.echo) and body.logprobs is not None)
        job = GenerationJob(make_requests(model, prompts, body, tokens, body.logprobs, schema, score_prompt))
        await until_disconnect(request, job.submit(engine))
        echoed = [prompt_text(model, prompt) for prompt in given] if body.echo else []
        return await respond(request, body, job, CompletionBuilder(model, body, echoed), metrics)

    @router.post("/chat/completions", responses=streaming_responses(openai.ChatChunk))
    async def chat(request: Request, body: openai.ChatRequest) -> openai.ChatCompletion:
        """Reply to a conversation, formatted with the model's chat template or, without one, as plain text."""
        model, engine = registry.model(body.model), registry.engine(body.model)
        if body.top_logprobs is not None and not body.logprobs:
            raise APIError(400, "invalid_request", "top_logprobs: requires logprobs", "top_logprobs")
        schema = json_schema(body.response_format)
        check_exclusive({"regex": body.regex, "response_format": schema})
        conversation = read_conversation(body.messages, body.tools or (), body.tool_choice)
        check_exclusive({"regex": body.regex, "tools": conversation.callable or None})
        engine.check_capacity()
        prompt = await until_disconnect(request, templates.prepare(model, body.model, conversation, schema))
        alternatives = body.top_logprobs or 0 if body.logprobs else None
        tokens = body.max_completion_tokens or body.max_tokens
        job = GenerationJob(
            make_requests(
                model, [prompt.ids], body, tokens, alternatives, schema, tool_grammar=prompt.grammar
            )
        )
        await until_disconnect(request, job.submit(engine))
        return await respond(request, body, job, ChatBuilder(model, body, prompt), metrics)

    return router


async def respond(
    request: Request,
    body: openai.Streaming,
    job: GenerationJob,
    builder: ResponseBuilder,
    metrics: ServerMetrics,
) -> Any:
    """Return the complete response, or a stream of events if the request asks for one."""

    def record_usage() -> None:
        metrics.record_usage(request, builder.head["model"], job.usage())

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
