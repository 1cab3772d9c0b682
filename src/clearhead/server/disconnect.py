"""Work that ends when whoever asked for it has left."""

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

Answer = TypeVar("Answer")


class ClientDisconnected(Exception):  # noqa: N818 (nobody's mistake)
    """The client is gone, and what it asked for was left undone."""


@asynccontextmanager
async def while_there(
    receive: Callable[[], Awaitable[Any]], left: Callable[[], object]
) -> AsyncIterator[None]:
    """Inside, `left` is called as soon as the client is gone."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


async def unless_left(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer; where the client leaves before it is there, the work is cancelled and Left raised."""
    task = asyncio.ensure_future(work)
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel()

    try:
        async with while_there(request.receive, leave):
            return await task
    except asyncio.CancelledError:
        if left:
            raise ClientDisconnected from None
        raise


def stop_if(left: threading.Event) -> None:
    if left.is_set():
        raise ClientDisconnected


async def in_thread(work: Callable[[threading.Event], Answer]) -> Answer:
    """What work gives, in another thread; it is handed what will be set when nobody waits for it any more.

    No thread can be made to stop. So who leaves is kept until its work has ended: otherwise the work of those
    who come and leave would pile up past every bound.
    """
    left = threading.Event()

    def begin() -> Answer:
        stop_if(left)
        return work(left)

    task = asyncio.ensure_future(run_in_threadpool(begin))
    try:
        await asyncio.wait([task])  # which, unlike the task itself, is cancelled without harm
    except asyncio.CancelledError:
        left.set()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # is nobody's any more
        raise
    return task.result()


class EventStream(Response):
    """Server-sent events as they come; `left` is called where the client goes before the end."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str], left: Callable[[], object]) -> None:
        super().__init__()
        self.events, self.left = events, left
        del self.headers["content-length"]

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async with while_there(receive, self.left), aclosing(self.events) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.left()  # where it ended otherwise, this does nothing
