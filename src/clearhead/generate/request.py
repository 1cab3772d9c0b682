"""A request for text, the ticket that is given for it, and the events by which its texts come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from clearhead.errors import UserError
from clearhead.generate.sampler import SampledToken, check_seed
from clearhead.generate.sampling import Sampling
from clearhead.generate.writing import Generated, check_limits

if TYPE_CHECKING:
    from clearhead.generate.constraint import Grammar

# The end token or a stop string came; `tokens` were drawn; it was cancelled; its time was up; it failed.
Finish = Literal["stop", "length", "cancelled", "time", "error"]


@dataclass(frozen=True)
class GenerationRequest:
    """What is asked for: how the prompt's ids should go on, and how often."""

    ids: tuple[int, ...]
    tokens: int = 200
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    stops: tuple[str, ...] = ()
    samples: int = 1
    seconds: float | None = None  # until it is ended, counted from when it was handed in

    def __post_init__(self) -> None:
        if not self.ids:
            raise UserError("the prompt is empty: expected at least one id")
        check_limits(self.tokens, self.seconds, self.samples)
        check_seed(self.seed)


@dataclass(frozen=True)
class Event:
    """A word of one sample, or its end, or both."""

    sample: int
    drawn: SampledToken | None = None  # the word
    text: str = ""  # what it makes sure of, which may be none
    finish: Finish | None = None  # with a sample's last event
    error: Exception | None = None  # with finish = "error"

    @property
    def id(self) -> int | None:
        return None if self.drawn is None else self.drawn.id


class Handle:
    """A request on its way. `for event in ticket` waits for its events, in any thread, and may be repeated.

    `listen` is told of each event too, in the thread that makes the text: it should only pass it on, as
    `lambda event: loop.call_soon_threadsafe(queue.put_nowait, event)` does to asyncio.
    """

    def __init__(self, request: GenerationRequest, listen: Callable[[Event], object] | None = None) -> None:
        self.request = request
        self.checked = False
        self.grammar: Grammar | None = None  # that its texts are held to, once it is checked
        self.events: list[Event] = []
        self._listen = listen
        self._deadline = None if request.seconds is None else time.monotonic() + request.seconds
        self._cancelled = False
        self._unfinished = set(range(request.samples))
        self._news = threading.Condition()

    def __iter__(self) -> Iterator[Event]:
        seen = 0
        while True:
            with self._news:
                while len(self.events) == seen and not self.done:
                    self._news.wait()
                fresh, done = self.events[seen:], self.done
            yield from fresh
            seen += len(fresh)
            if done:
                return

    @property
    def done(self) -> bool:
        return not self._unfinished

    def texts(self) -> list[Generated]:
        """What was written for each sample, once all are at their end. Raises the error it failed with."""
        pieces: list[list[Generated]] = [[] for _ in range(self.request.samples)]
        for event in self:
            if event.error is not None:
                raise event.error
            drawn = () if event.drawn is None else (event.drawn,)
            pieces[event.sample].append(Generated(event.text, drawn, event.finish))
        return [Generated.joined(each) for each in pieces]

    def cancel(self) -> None:
        """End it before its next word, and free its slots."""
        self._cancelled = True

    def dismissed(self) -> Finish | None:
        """Why it should end now, if it should."""
        if self._cancelled:
            return "cancelled"
        return "time" if self._deadline is not None and time.monotonic() >= self._deadline else None

    def send(self, event: Event) -> None:
        """Hand out an event. For whoever makes the text."""
        with self._news:
            self.events.append(event)
            if event.finish is not None:
                self._unfinished.discard(event.sample)
            self._news.notify_all()
        if self._listen is not None:
            self._listen(event)
            if self.done:
                self._listen = None  # which may hold this ticket: neither should wait to be collected

    def fail(self, error: Exception) -> None:
        """End every sample that has not ended yet. What listens may be what failed: it is told no more."""
        for sample in sorted(self._unfinished):
            event = Event(sample, finish="error", error=error)
            try:
                self.send(event)
            except BaseException:  # in a thread even SystemExit is but a failure
                self._listen = None
