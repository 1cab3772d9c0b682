"""Run the work of a request, and cancel it when the client disconnects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


class ClientDisconnected(Exception):  # noqa: N818 (not an error)
    """The client disconnected before its response was complete."""


@asynccontextmanager
async def watch_disconnect(
    receive: Callable[[], Awaitable[Any]], on_disconnect: Callable[[], object]
) -> AsyncIterator[None]:
    """Call `on_disconnect` if the client disconnects inside the block."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_disconnect()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; if the client disconnects first, cancel it and raise ClientDisconnected."""
    task = asyncio.ensure_future(work)
    disconnected = False

    def cancel() -> None:
        nonlocal disconnected
        disconnected = True
        task.cancel()

    try:
        async with watch_disconnect(request.receive, cancel):
            return await task
    except asyncio.CancelledError:
        if disconnected:
            raise ClientDisconnected from None
        raise


def raise_if_cancelled(cancelled: threading.Event) -> None:
    if cancelled.is_set():
        raise ClientDisconnected


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run `work` in a worker thread and return its result.

    The event passed to `work` is set when this task is canceled. A thread cannot be stopped from outside. A
    canceled task therefore waits until its thread has returned; otherwise the threads of disconnected clients
    would accumulate past every limit.
    """
    cancelled = threading.Event()

    def start() -> T:
        raise_if_cancelled(cancelled)
        return work(cancelled)

    task = asyncio.ensure_future(run_in_threadpool(start))
    try:
        await asyncio.wait([task])  # canceling this wait does not cancel the task
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved
        raise
    return task.result()


class EventStream(Response):
    """Server-sent events; calls `on_close` when the client disconnects and when the stream ends."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str], on_close: Callable[[], object]) -> None:
        super().__init__()
        self.events, self.on_close = events, on_close
        del self.headers["content-length"]

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async with watch_disconnect(receive, self.on_close), aclosing(self.events) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.on_close()
