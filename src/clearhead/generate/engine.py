"""The engine: a scheduler in a separate thread, which accepts requests from any other thread."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Any

from clearhead.errors import UserError
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampling import QUEUE, SLOTS, check_options
from clearhead.generate.scheduler import Scheduler
from clearhead.networks import Network
from clearhead.text.tokenizer import Tokenizer


class Busy(Exception):  # noqa: N818 (a state of the engine, not the caller's error)
    """The engine accepts no more requests at the moment."""


class Engine:
    """Serves requests in order of arrival; a request gets the same text regardless of the rest of the batch.

    On CUDA, this holds up to rounding (see `cuda_batch_decoder.py`). `slots` samples are generated at once and
    `queue` requests may wait. Close the engine, or use it in a `with` statement.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        slots: int = SLOTS,
        queue: int = QUEUE,
        **settings: Any,
    ) -> None:
        check_options(slots=slots, queue=queue)
        self.queue = queue
        self._scheduler = Scheduler(network, tokenizer, slots, **settings)
        self._submitted: list[Handle] = []
        self._closing = self._cancelling = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="clearhead-engine", daemon=True)
        self._thread.start()
        # A thread inside a matrix product when the interpreter exits would crash the process.
        atexit.register(self.close, cancel=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)

    @property
    def waiting(self) -> int:
        """The number of requests whose samples do not all have a slot yet, or whose prompt is being scored."""
        return len(self._submitted) + len(self._scheduler.waiting) + len(self._scheduler.scoring.handles)

    @property
    def running(self) -> int:
        """The number of samples being generated."""
        return len(self._scheduler.running)

    def submit(self, request: GenerationRequest, on_event: Callable[[Event], object] | None = None) -> Handle:
        """Queue a request. Raises Busy if too many requests are waiting or the engine is closed."""
        if not isinstance(request, GenerationRequest):
            raise UserError(
                f"request has type {type(request).__name__}: expected the result of model.request(…)"
            )
        handle = Handle(request, on_event)
        self._scheduler.validate(handle)
        with self._changed:
            self.check_capacity()
            self._submitted.append(handle)
            self._changed.notify()
        return handle

    def check_capacity(self) -> None:
        """Raise Busy if `submit` would; call this before preparing a costly request."""
        if self._closing:
            raise Busy("the engine is closed")
        if self.waiting >= self.queue:
            raise Busy(f"{self.waiting} requests are already waiting: try again later")

    def stop(self, cancel: bool = False) -> None:
        """Accept no more requests; with `cancel`, end the current ones with their text so far. Does not wait."""
        with self._changed:
            self._closing = True
            self._cancelling |= cancel
            self._changed.notify()

    def close(self, cancel: bool = False) -> None:
        """Call `stop`, then wait until all requests have finished."""
        self.stop(cancel)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        atexit.unregister(self.close)

    def _run(self) -> None:
        try:
            while self._wait():
                self._step()
        finally:
            with self._changed:
                self._closing = True
            for handle in (*self._submitted, *self._scheduler.handles):  # none, unless the thread has failed
                handle.fail(RuntimeError("the engine has failed"))

    def _wait(self) -> bool:
        """Wait until there is work; return False if there never will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._submitted or self._scheduler.has_work or self._closing)
            for handle in self._submitted:
                self._scheduler.add(handle)
            self._submitted.clear()
            return self._scheduler.has_work

    def _step(self) -> None:
        if self._cancelling:
            for handle in self._scheduler.handles:
                handle.cancel()
        try:
            self._scheduler.step()
        except Exception as error:  # a bug in Clearhead: report it to all unfinished requests
            for handle in self._scheduler.handles:
                self._scheduler.fail(handle, error)
