"""The server's routes, asked inside this process: the same answers without a port, a token or a socket."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from starlette.types import Message, Scope

from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.app import make_routes
from clearhead.server.record import Record
from clearhead.server.shelf import Served, Shelf

Result = TypeVar("Result")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Routes:
    """Some models, and traces of theirs that were made in Python: each stands for its own text."""

    def __init__(self, models: dict[str, tuple[LanguageModel, tuple[Trace, ...]]]) -> None:
        served = [Served(name, model, traces=traces) for name, (model, traces) in models.items()]
        shelf = Shelf(served)
        self._app = make_routes(shelf, Record(shelf))

    def ask(self, method: str, path: str, body: str = "") -> Answer:
        """The answer, when it is there."""
        return in_background(self.answer(method, path, body, asyncio.Event())).result()

    async def answer(self, method: str, path: str, body: str, left: asyncio.Event) -> Answer:
        """The answer; `left` is set where nobody waits for it any more."""
        given = [body.encode()]
        status, headers, parts = 500, {}, []

        async def receive() -> Message:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {
                    name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
                }
            else:
                parts.append(message.get("body", b""))

        try:
            await self._app(_scope(method, path), receive, send)
        except Exception:  # a mistake of ours: the answer says so, and here is more of it
            logging.getLogger(__name__).exception("%s %s", method, path)
        return Answer(status, headers, b"".join(parts))


def _scope(method: str, path: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "client": None,
        "server": None,
    }


def in_background(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Beside what the notebook does: a cell that runs and a widget that asks do not wait for each other."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clearhead-notebook", daemon=True).start()
    return loop
