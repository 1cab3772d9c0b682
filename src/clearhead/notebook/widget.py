"""The explorer as a notebook widget: the page's components, with requests answered in this process."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

import anywidget
import traitlets

from clearhead.page.assets import read_bundle
from clearhead.server.in_process import InProcessClient, InProcessResponse, run_in_background

METHODS = ("GET", "POST")


@dataclass(frozen=True)
class InitialView:
    """What the widget opens with: a query string of the page, and the token ids of a trace's text."""

    query: str
    ids: list[int] | None = None
    edits: int = 0  # made in Python


class Explorer(anywidget.AnyWidget):
    """An explorer of models in this process."""

    _esm = read_bundle("widget.js")
    opening = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, client: InProcessClient, view: InitialView, height: int | None = None) -> None:
        super().__init__(opening=asdict(view), height=height)
        self._client = client
        self._pending: dict[str, asyncio.Event] = {}  # by request; set to cancel it
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_msg(self._receive)

    def _receive(self, _: object, message: Any, __: object) -> None:
        """Handle a request from the page, or its cancellation."""
        name = message["id"]
        if message.get("leave"):
            if (cancelled := self._pending.get(name)) is not None:
                run_in_background(_set(cancelled))
            return
        method, path, body = message["method"], message["path"], message.get("body") or ""
        if method not in METHODS or not path.startswith("/api/"):
            return
        cancelled = self._pending[name] = asyncio.Event()
        response = run_in_background(self._client.request_async(method, path, body, cancelled))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._respond(name, response.result())
        else:  # wait in the background, but send from this thread, as the kernel requires
            task = loop.create_task(self._respond_later(name, response))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _respond_later(self, name: str, response: Future[InProcessResponse]) -> None:
        self._respond(name, await asyncio.wrap_future(response))

    def _respond(self, name: str, response: InProcessResponse) -> None:
        del self._pending[name]
        self.send({"id": name, "status": response.status, "headers": response.headers}, [response.body])


async def _set(event: asyncio.Event) -> None:
    event.set()
