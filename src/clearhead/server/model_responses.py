"""OpenAI's route for responses: a conversation as items, and the reply as items or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from fastapi import APIRouter, Request

from clearhead.api import model_responses as api
from clearhead.api import openai, tools
from clearhead.errors import UserError
from clearhead.server.chat_prompts import ChatTemplates, invalid, read_conversation
from clearhead.server.disconnect import EventStream, until_disconnect
from clearhead.server.generation import GenerationJob, make_requests
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.model_response_builder import ModelResponseBuilder
from clearhead.server.route_descriptions import event_responses

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "seed", "seconds")
STORED = ("previous_response_id", "conversation", "prompt")
REQUIRED = {  # fields of each kind of item
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}


def make_router(registry: ModelRegistry, metrics: ServerMetrics, templates: ChatTemplates) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])

    @router.post("/responses", responses=event_responses(api.ResponseEvent))
    async def respond(request: Request, body: api.ResponseRequest) -> api.ModelResponse:
        """Reply to a conversation, which the request contains in full."""
        model, engine = registry.model(body.model), registry.engine(body.model)
        for name in STORED:
            if getattr(body, name) is not None:
                message = f"{name}: not supported, because responses are not stored; send all items as input"
                raise invalid(message, name)
        schema = _text_schema(body.text)
        conversation = read_conversation(_messages(body), _tools(body), _tool_choice(body))
        engine.check_capacity()
        prompt = await until_disconnect(request, templates.prepare(model, body.model, conversation, schema))
        sampling = openai.SamplingFields(**{name: getattr(body, name) for name in SAMPLING})
        requests = make_requests(
            model,
            [prompt.ids],
            sampling,
            body.max_output_tokens,
            json_schema=schema,
            tool_grammar=prompt.grammar,
        )
        job = GenerationJob(requests)
        await until_disconnect(request, job.submit(engine))
        builder = ModelResponseBuilder(model, body, prompt)
        return await _respond(request, bool(body.stream), job, builder, metrics)

    return router


async def _respond(
    request: Request, stream: bool, job: GenerationJob, builder: ModelResponseBuilder, metrics: ServerMetrics
) -> Any:
    def record_usage() -> None:
        metrics.record_usage(request, builder.response.model, job.usage())

    if not stream:
        try:
            (choice,) = await until_disconnect(request, job.finish())
        finally:
            record_usage()
        for event in choice.events:
            builder.push(event)
        return builder.finish(job.usage())

    async def events() -> AsyncGenerator[str]:
        try:
            for each in builder.begin():
                yield _event(each)
            async for _, event in job.events():
                for each in builder.push(event):
                    yield _event(each)
            builder.finish(job.usage())
            yield _event(builder.last())
        except UserError as error:
            yield _event(builder.fail(str(error)))
        finally:
            record_usage()

    return EventStream(events(), job.cancel)


def _event(event: api.ResponseEvent) -> str:
    return f"event: {event.type}\ndata: {json.dumps(event.model_dump(), allow_nan=False)}\n\n"


def _messages(body: api.ResponseRequest) -> list[openai.Message]:
    """The input as messages. Calls belong to the assistant message before them."""
    messages: list[openai.Message] = []
    if body.instructions is not None:
        messages.append(_message("system", body.instructions))
    if isinstance(body.input, str):
        return [*messages, _message("user", body.input)]
    for i, item in enumerate(body.input):
        for name in REQUIRED[item.type]:
            if getattr(item, name) is None:
                raise invalid(f"input.{i}.{name}: Field required in a {item.type}", f"input.{i}.{name}")
        if item.type == "message":
            messages.append(_message(str(item.role), _join(item.content)))
        elif item.type == "function_call_output":
            messages.append(_message("tool", _join(item.output), item.call_id))
        else:
            function = tools.CalledFunction(name=item.name or "", arguments=item.arguments or "")
            call = tools.ToolCall(id=item.call_id or "", function=function)
            if not messages or messages[-1].role != "assistant":
                messages.append(_message("assistant", ""))
            messages[-1].tool_calls = [*(messages[-1].tool_calls or ()), call]
    return messages


def _message(role: str, content: str, call_id: str | None = None) -> openai.Message:
    return openai.Message(role=role, content=content, tool_calls=None, tool_call_id=call_id)


def _join(content: str | Sequence[api.InputPart] | None) -> str:
    parts = content or ""
    return parts if isinstance(parts, str) else "".join(part.text for part in parts)


def _tools(body: api.ResponseRequest) -> list[tools.FunctionTool]:
    return [
        tools.FunctionTool(type="function", function=tools.Function(**each.model_dump(exclude={"type"})))
        for each in body.tools or ()
    ]


def _tool_choice(body: api.ResponseRequest) -> tools.ToolChoice | None:
    choice = body.tool_choice
    if isinstance(choice, str | None):
        return choice
    if isinstance(choice, api.NamedChoice):
        return _named(choice)
    allowed = tools.AllowedTools(mode=choice.mode, tools=[_named(each) for each in choice.tools])
    return tools.AllowedToolChoice(type="allowed_tools", allowed_tools=allowed)


def _named(choice: api.NamedChoice) -> tools.NamedTool:
    return tools.NamedTool(type="function", function=tools.NamedFunction(name=choice.name))


def _text_schema(text: api.TextConfig | None) -> Any:
    if text is None or text.format is None or text.format.type == "text":
        return None
    if text.format.type == "json_object":
        return {"type": "object"}
    if text.format.json_schema is None:
        raise invalid("text.format of type json_schema: expected a schema", "text.format.schema")
    return text.format.json_schema
