"""A client's request for text, handed to an engine, and the events of it as they come back."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clearhead.api.openai import MOST_SAMPLES, MOST_TOKENS, TEMPERATURE, SamplingFields, Usage
from clearhead.errors import UserError
from clearhead.generate.engine import Engine
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampling import Sampling
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError

LONGEST = 600.0  # seconds that one request may be written on
FINISH: dict[str, Any] = {"stop": "stop", "length": "length", "time": "length", "cancelled": "length"}


@dataclass
class Choice:
    """One sample as it grows."""

    events: list[Event] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events)

    @property
    def finish(self) -> Any:
        last = self.events[-1].finish_reason if self.events else None
        return FINISH.get(last or "")

    @property
    def n_tokens(self) -> int:
        return sum(event.id is not None for event in self.events)


class GenerationJob:
    """Some prompts, each to be gone on from so many times. Choices are numbered prompt by prompt."""

    def __init__(self, requests: Sequence[GenerationRequest]) -> None:
        self.requests = requests
        self.samples = requests[0].samples
        self.choices = [Choice() for _ in range(len(requests) * self.samples)]
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        self.handles: list[Handle] = []

    async def begin(self, engine: Engine) -> None:
        """Hand in what is body. In another thread: a rule that texts are held to takes time to make."""
        loop = asyncio.get_running_loop()

        def submit(cancelled: threading.Event) -> None:
            for number, request in enumerate(self.requests):
                if cancelled.is_set():
                    return
                self.handles.append(engine.submit(request, self._passer(loop, number * self.samples)))

        try:
            await in_thread(submit)
        except BaseException:
            self.cancel()
            raise

    def _passer(self, loop: asyncio.AbstractEventLoop, first: int) -> Any:
        def listen(event: Event) -> None:
            try:
                loop.call_soon_threadsafe(self._events.put_nowait, (first + event.sample, event))
            except RuntimeError:
                self.cancel()  # the server is gone

        return listen

    def cancel(self) -> None:
        for handle in self.handles:
            handle.cancel()

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """The number of a choice, and a word of it, until all are written."""
        open_choices = set(range(len(self.choices)))
        while open_choices:
            number, event = await self._events.get()
            if event.error is not None:
                self.cancel()
                raise event.error
            self.choices[number].events.append(event)
            if event.finish_reason is not None:
                open_choices.discard(number)
            yield number, event

    async def finish(self) -> list[Choice]:
        try:
            async for _ in self.events():
                pass
        except BaseException:
            self.cancel()
            raise
        return self.choices

    def usage(self) -> Usage:
        read = sum(len(request.ids) for request in self.requests)
        written = sum(choice.n_tokens for choice in self.choices)
        return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


def make_requests(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    body: SamplingFields,
    tokens: int | None,
    log_probabilities: int | None = None,
    json_schema: Any = None,
) -> list[GenerationRequest]:
    """What the engine is handed, within what the model can read."""
    if len(prompts) * (body.n or 1) > MOST_SAMPLES:
        raise APIError(400, "too_many", f"at most {MOST_SAMPLES} texts at a time are written", "n")
    n_context = model.config.n_context
    for ids in prompts:
        if len(ids) > n_context:
            what = f"the prompt has {len(ids)} tokens; this model can look back on {n_context}"
            raise APIError(400, "context_length_exceeded", what, "prompt", count=len(ids), most=n_context)
        if bad := next((i for i in ids if i >= model.config.n_vocab), None):
            raise APIError(400, "invalid_request", f"there is no token {bad}", "prompt")
    options = {name: getattr(body, name, None) for name in Sampling.names()}
    options |= {"log_probabilities": log_probabilities, "json_schema": json_schema}
    options["logit_bias"] = {int(i): bias for i, bias in (body.logit_bias or {}).items()}
    given = {name: value for name, value in options.items() if value is not None}  # null is the default
    sampling = Sampling(**{"temperature": TEMPERATURE, **given})
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    seed = secrets.randbelow(2**32) if body.seed is None else body.seed % 2**32
    return [
        GenerationRequest(
            ids=tuple(ids),
            tokens=tokens or min(MOST_TOKENS, max(1, n_context - len(ids))),
            sampling=sampling,
            seed=seed,
            stop=tuple(stops),
            samples=body.n or 1,
            seconds=min(body.seconds or LONGEST, LONGEST),
        )
        for ids in prompts
    ]


def check_one(constraints: dict[str, Any]) -> None:
    given = [name for name, value in constraints.items() if value is not None]
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)} were both given; give one of them")
