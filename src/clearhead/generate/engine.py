"""The engine: a service in a thread of its own, which takes requests from any other."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Any

from clearhead.errors import UserError
from clearhead.generate.capacity import MOST_QUEUE, MOST_SLOTS, QUEUE, SLOTS
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampling import is_whole
from clearhead.generate.scheduler import Scheduler
from clearhead.networks import Network
from clearhead.text.tokenizer import Tokenizer


class Busy(Exception):  # noqa: N818 (it is a state of things, nobody's mistake)
    """No more requests are taken at the moment."""


class Engine:
    """Serves requests first come, first served; the same request gets the same text whatever runs beside it.

    `slots` samples are written at once, and `queue` requests may wait. Close it, or use it in a `with`.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        slots: int = SLOTS,
        queue: int = QUEUE,
        **settings: Any,
    ) -> None:
        for name, value, most in (("slots", slots, MOST_SLOTS), ("queue", queue, MOST_QUEUE)):
            if not is_whole(value) or not 1 <= value <= most:
                raise UserError(f"{name} = {value!r}: expected a whole number, 1 to {most}")
        self.queue = queue
        self._service = Scheduler(network, tokenizer, slots, **settings)
        self._arrived: list[Handle] = []
        self._closing = self._cancelling = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="clearhead-engine", daemon=True)
        self._thread.start()
        # A thread inside a matrix product when the interpreter goes away takes the process down with it.
        atexit.register(self.close, cancel=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)

    @property
    def waiting(self) -> int:
        """Requests of which not every sample has a slot yet."""
        return len(self._arrived) + len(self._service.prompts)

    @property
    def running(self) -> int:
        """Samples that are being written."""
        return len(self._service.texts)

    def submit(self, request: GenerationRequest, listen: Callable[[Event], object] | None = None) -> Handle:
        """Hand in a request. Raises Busy when too many are waiting, or when the engine is closed."""
        if not isinstance(request, GenerationRequest):
            raise UserError(f"a request is a {type(request).__name__}: expected what model.request(…) gives")
        ticket = Handle(request, listen)
        self._service.check(ticket)
        with self._news:
            self.check_room()
            self._arrived.append(ticket)
            self._news.notify()
        return ticket

    def check_room(self) -> None:
        """Raises Busy where a request would not be taken now: to ask before making one ready."""
        if self._closing:
            raise Busy("the engine is closed")
        if self.waiting >= self.queue:
            raise Busy(f"{self.waiting} requests are waiting already: try again later")

    def end(self, cancel: bool = False) -> None:
        """Take no more requests; `cancel` ends those there are where they stand. Nobody waits."""
        with self._news:
            self._closing = True
            self._cancelling |= cancel
            self._news.notify()

    def close(self, cancel: bool = False) -> None:
        """The same, and return when all have ended."""
        self.end(cancel)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        atexit.unregister(self.close)

    def _run(self) -> None:
        try:
            while self._wait():
                self._turn()
        finally:
            with self._news:
                self._closing = True
            for ticket in (*self._arrived, *self._service.tickets):  # none, unless the thread broke down
                ticket.fail(RuntimeError("the engine broke down"))

    def _wait(self) -> bool:
        """Until there is something to do; False when there never will be."""
        with self._news:
            self._news.wait_for(lambda: self._arrived or self._service.busy or self._closing)
            for ticket in self._arrived:
                self._service.add(ticket)
            self._arrived.clear()
            return self._service.busy

    def _turn(self) -> None:
        if self._cancelling:
            for ticket in self._service.tickets:
                ticket.cancel()
        try:
            self._service.turn()
        except Exception as error:  # our own mistake; whoever waits is told
            for ticket in self._service.tickets:
                self._service.fail(ticket, error)
