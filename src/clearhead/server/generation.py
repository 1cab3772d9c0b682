"""Generation for the OpenAI routes: requests are submitted to an engine, and its events are passed to asyncio."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clearhead.api.openai import MAX_SAMPLES, MAX_TOKENS, TEMPERATURE, SamplingFields, Usage
from clearhead.errors import UserError
from clearhead.generate.engine import Engine
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampling import Sampling
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError
from clearhead.server.prompts import check_length

MAX_SECONDS = 600.0  # of generation for one request
# The engine's finish reasons, mapped to OpenAI's.
FINISH_REASONS: dict[str, Any] = {"stop": "stop", "length": "length", "time": "length", "cancelled": "length"}


@dataclass
class Choice:
    """One sample, as far as it has been generated."""

    events: list[Event] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events)

    @property
    def finish_reason(self) -> Any:
        last = self.events[-1].finish_reason if self.events else None
        return FINISH_REASONS.get(last or "")

    @property
    def n_tokens(self) -> int:
        return sum(event.id is not None for event in self.events)


class GenerationJob:
    """One or more prompts, each with the same number of samples. Choices are numbered prompt by prompt."""

    def __init__(self, requests: Sequence[GenerationRequest]) -> None:
        self.requests = requests
        self.samples = requests[0].samples
        self.choices = [Choice() for _ in range(len(requests) * self.samples)]
        self.handles: list[Handle] = []
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()

    async def submit(self, engine: Engine) -> None:
        """Submit the requests, in a worker thread because compiling a grammar takes time."""
        loop = asyncio.get_running_loop()

        def submit(cancelled: threading.Event) -> None:
            for number, request in enumerate(self.requests):
                if cancelled.is_set():
                    return
                self.handles.append(engine.submit(request, self._forwarder(loop, number * self.samples)))

        try:
            await in_thread(submit)
        except BaseException:
            self.cancel()
            raise

    def _forwarder(self, loop: asyncio.AbstractEventLoop, first: int) -> Callable[[Event], None]:
        """Return a callback that queues an engine's events, numbering their choices from `first`."""

        def forward(event: Event) -> None:
            try:
                loop.call_soon_threadsafe(self._events.put_nowait, (first + event.sample, event))
            except RuntimeError:
                self.cancel()  # the event loop is closed

        return forward

    def cancel(self) -> None:
        for handle in self.handles:
            handle.cancel()

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """Yield the index of a choice and its next event, until all choices are finished."""
        unfinished = set(range(len(self.choices)))
        while unfinished:
            number, event = await self._events.get()
            if event.error is not None:
                self.cancel()
                raise event.error
            self.choices[number].events.append(event)
            if event.finish_reason is not None:
                unfinished.discard(number)
            yield number, event

    async def finish(self) -> list[Choice]:
        """Wait until all choices are finished."""
        try:
            async for _ in self.events():
                pass
        except BaseException:
            self.cancel()
            raise
        return self.choices

    def usage(self) -> Usage:
        prompt = sum(len(request.ids) for request in self.requests)
        completion = sum(choice.n_tokens for choice in self.choices)
        return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def make_requests(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    body: SamplingFields,
    tokens: int | None,
    log_probabilities: int | None = None,
    json_schema: Any = None,
    score_prompt: bool = False,
    tool_grammar: str | None = None,
) -> list[GenerationRequest]:
    """Return the engine's requests for these prompts, after checking them against the model's context.

    If no number of tokens is given, generation ends when the context is full.
    """
    if len(prompts) * (body.n or 1) > MAX_SAMPLES:
        message = f"{len(prompts)} prompts times n = {body.n}: expected at most {MAX_SAMPLES} samples in all"
        raise APIError(400, "too_many", message, "n")
    for ids in prompts:
        check_length(model, len(ids))
        if bad := next((i for i in ids if i >= model.config.n_vocab), None):
            message = f"token {bad} does not exist: expected an id from 0 to {model.config.n_vocab - 1}"
            raise APIError(400, "invalid_request", message, "prompt")
    options = {name: getattr(body, name, None) for name in Sampling.names()}
    options |= {"log_probabilities": log_probabilities}
    options |= {"json_schema": None if tool_grammar else json_schema}  # the grammar includes the schema
    options["logit_bias"] = {int(i): bias for i, bias in (body.logit_bias or {}).items()}
    given = {name: value for name, value in options.items() if value is not None}  # null means the default
    if body.top_p == 0:
        given |= {"temperature": 0, "top_p": None}
    sampling = Sampling(**{"temperature": TEMPERATURE, **given})
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    seed = secrets.randbelow(2**32) if body.seed is None else body.seed % 2**32
    return [
        GenerationRequest(
            ids=tuple(ids),
            tokens=_limit_tokens(tokens, model.config.n_context - len(ids)),
            sampling=sampling,
            seed=seed,
            stop=tuple(stop),
            samples=body.n or 1,
            seconds=min(body.seconds or MAX_SECONDS, MAX_SECONDS),
            score_prompt=score_prompt,
            tool_grammar=tool_grammar,
        )
        for ids in prompts
    ]


def _limit_tokens(tokens: int | None, left: int) -> int:
    """The number of tokens to generate, with room for `left` more tokens in the context."""
    if tokens is None:
        return min(MAX_TOKENS, max(1, left))
    return min(tokens, max(1, left))


def check_exclusive(constraints: dict[str, Any]) -> None:
    """Raise UserError if more than one of these options is given."""
    given = [name for name, value in constraints.items() if value is not None]
    if len(given) > 1:
        raise UserError(f"both {' and '.join(given)} were given: expected only one")
