"""The widget: the page's components in a cell, their questions answered in this process."""

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
class Opening:
    """Where it opens: an address of the page, and the text's ids where it was read in Python."""

    query: str
    ids: list[int] | None = None
    edits: int = 0  # that were made in Python


class Explorer(anywidget.AnyWidget):
    """An explorer over some models of this process."""

    _esm = read_bundle("widget.js")
    opening = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, routes: InProcessClient, opening: Opening, height: int | None = None) -> None:
        super().__init__(opening=asdict(opening), height=height)
        self._routes = routes
        self._asked: dict[str, asyncio.Event] = {}  # set where nobody waits for an answer any more
        self._telling: set[asyncio.Task[None]] = set()
        self.on_msg(self._hear)

    def _hear(self, _: object, message: Any, __: object) -> None:
        """A question, or that nobody waits for its answer any more."""
        name = message["id"]
        if message.get("leave"):
            left = self._asked.get(name)
            if left is not None:
                run_in_background(_set(left))
            return
        method, path, body = message["method"], message["path"], message.get("body") or ""
        if method not in METHODS or not path.startswith("/api/"):
            return
        left = self._asked[name] = asyncio.Event()
        answer = run_in_background(self._routes.answer(method, path, body, left))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._tell(name, answer.result())
        else:  # told by this thread, which the notebook knows, but waited for by another
            task = loop.create_task(self._tell_later(name, answer))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell_later(self, name: str, answer: Future[InProcessResponse]) -> None:
        self._tell(name, await asyncio.wrap_future(answer))

    def _tell(self, name: str, answer: InProcessResponse) -> None:
        del self._asked[name]
        self.send({"id": name, "status": answer.status, "headers": answer.headers}, [answer.body])


async def _set(event: asyncio.Event) -> None:
    event.set()
