"""A request for generated text, its handle, and the events that deliver the text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from clearhead.errors import UserError
from clearhead.generate.detokenizer import Generated
from clearhead.generate.sampler import SampledToken
from clearhead.generate.sampling import OPTIONS, Sampling, check_options
from clearhead.generate.scoring import ScoredText

if TYPE_CHECKING:
    from clearhead.generate.constraint import Grammar

# In this order: an end token or a stop string; the token limit; `Handle.cancel`; the time limit; an exception.
FinishReason = Literal["stop", "length", "cancelled", "time", "error"]


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt and how to continue it, `samples` times.

    With `score_prompt`, each sample's first event has the log-probabilities of the prompt's tokens; such a request may
    ask for no tokens at all. Prompts are scored in batches, which may change the last digits of their
    log-probabilities and of those of a single token that follows.
    """

    ids: tuple[int, ...]
    tokens: int = OPTIONS["tokens"].default
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = OPTIONS["seed"].default
    stop: tuple[str, ...] = ()
    samples: int = OPTIONS["samples"].default
    seconds: float | None = OPTIONS["seconds"].default  # counted from the submission of the request
    score_prompt: bool = False
    tool_grammar: str | None = None  # of the reply, in place of a regex or a schema (`tool_grammar.py`)

    def __post_init__(self) -> None:
        if not self.ids:
            raise UserError("the prompt is empty: expected at least one id")
        tokens = self.tokens or 1 if self.score_prompt else self.tokens
        if self.tool_grammar is not None and self.sampling.constrained:
            raise UserError("tools cannot be combined with a regex or a JSON schema: give only one")
        check_options(tokens=tokens, seed=self.seed, samples=self.samples, seconds=self.seconds)

    @property
    def constrained(self) -> bool:
        return self.sampling.constrained or self.tool_grammar is not None


class Event(NamedTuple):
    """A token of one sample, its scored prompt, or its end; one event may be several of these."""

    sample: int
    token: SampledToken | None = None
    text: str = ""  # completed by the token, may be empty
    finish_reason: FinishReason | None = None  # in the last event of a sample
    error: Exception | None = None  # if the finish reason is "error"
    prompt: ScoredText | None = None  # in the first event, if the request asks for it

    @property
    def id(self) -> int | None:
        return None if self.token is None else self.token.id


class Handle:
    """A submitted request. Iterate over it, in any thread and any number of times, to wait for its events.

    `on_event` is also called with each event, in the thread that generates: it should only pass the event on,
    as `lambda event: loop.call_soon_threadsafe(queue.put_nowait, event)` does for asyncio.
    """

    def __init__(self, request: GenerationRequest, on_event: Callable[[Event], object] | None = None) -> None:
        self.request = request
        self.validated = False
        self.grammar: Grammar | None = None  # of a constrained request, once it is validated
        self.events: list[Event] = []
        self._on_event = on_event
        self._deadline = None if request.seconds is None else time.monotonic() + request.seconds
        self._cancelled = False
        self._unfinished = set(range(request.samples))
        self._changed = threading.Condition()
        self._n_waiting = 0  # threads that wait for the next event

    def __iter__(self) -> Iterator[Event]:
        seen = 0
        while True:
            if len(self.events) == seen and not self.done:
                self._wait(seen)
            done = self.done  # read first: the last event precedes it
            new = self.events[seen:]
            yield from new
            seen += len(new)
            if done:
                return

    def _wait(self, seen: int) -> None:
        """Wait until there are more than `seen` events, or all samples have finished."""
        with self._changed:
            self._n_waiting += 1
            try:
                self._changed.wait_for(lambda: len(self.events) > seen or self.done)
            finally:
                self._n_waiting -= 1

    @property
    def done(self) -> bool:
        return not self._unfinished

    def texts(self) -> list[Generated]:
        """Wait until all samples have finished and return their texts; raise if the request failed."""
        pieces: list[list[Generated]] = [[] for _ in range(self.request.samples)]
        for event in self:
            if event.error is not None:
                raise event.error
            sampled = () if event.token is None else (event.token,)
            pieces[event.sample].append(Generated(event.text, sampled, event.finish_reason))
        return [Generated.concatenate(sample) for sample in pieces]

    def cancel(self) -> None:
        """Finish all samples before their next token and free their slots."""
        self._cancelled = True

    def stop_reason(self) -> FinishReason | None:
        """Return why the request must finish now: it was canceled, or its time is up."""
        if self._cancelled:
            return "cancelled"
        return "time" if self._deadline is not None and time.monotonic() >= self._deadline else None

    def emit(self, event: Event) -> None:
        """Record an event and wake up the waiting threads. Called by the scheduler."""
        self.events.append(event)
        if event.finish_reason is not None:
            self._unfinished.discard(event.sample)
        # A thread is counted before it looks for new events, so that none waits for an event that is already there.
        if self._n_waiting:
            with self._changed:
                self._changed.notify_all()
        if self._on_event is not None:
            self._on_event(event)
            if self.done:
                self._on_event = None  # may refer to this handle: break the reference cycle

    def fail(self, error: Exception) -> None:
        """Finish the unfinished samples with an error. An `on_event` that raises is not called again."""
        for sample in sorted(self._unfinished):
            event = Event(sample, finish_reason="error", error=error)
            try:
                self.emit(event)
            except BaseException:  # even SystemExit must not end the thread that generates
                self._on_event = None


def parse_stop(stop: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return one stop string, several strings, or None as a tuple."""
    if stop is None:
        return ()
    stops = tuple(stop) if isinstance(stop, Iterable) and not isinstance(stop, str) else (stop,)
    if not all(isinstance(text, str) and text for text in stops):
        raise UserError(f"stop = {stop!r}: expected a non-empty string or a list of non-empty strings")
    return stops
