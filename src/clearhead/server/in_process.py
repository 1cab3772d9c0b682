"""A client of the server's routes in the same process: the same responses without a port, token or socket."""

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

from clearhead.errors import UserError
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry, ServedModel

Models = dict[str, tuple[LanguageModel, tuple[Trace, ...]]]  # by name, each with traces made in Python
T = TypeVar("T")


@dataclass(frozen=True)
class InProcessResponse:
    status: int
    headers: dict[str, str]
    body: bytes


class InProcessClient:
    """Sends requests about these models. A request with the text of a given trace is answered from that trace."""

    def __init__(self, models: Models) -> None:
        served = [ServedModel(name, model, traces=traces) for name, (model, traces) in models.items()]
        registry = ModelRegistry(served)
        self._app = make_api(registry, ServerMetrics(registry))

    def request(self, method: str, path: str, body: str = "") -> InProcessResponse:
        """Send a request and wait for the response."""
        return run_in_background(self.request_async(method, path, body, asyncio.Event())).result()

    async def request_async(
        self, method: str, path: str, body: str, disconnected: asyncio.Event
    ) -> InProcessResponse:
        """Send a request and await the response. Setting `disconnected` cancels the request."""
        pending = [body.encode()]
        status, headers, chunks = 500, {}, []

        async def receive() -> Message:
            if pending:
                return {"type": "http.request", "body": pending.pop(), "more_body": False}
            await disconnected.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {
                    name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
                }
            else:
                chunks.append(message.get("body", b""))

        try:
            await self._app(_scope(method, path), receive, send)
        except Exception:  # the response reports an internal error; the log has the traceback
            logging.getLogger(__name__).exception("%s %s", method, path)
        return InProcessResponse(status, headers, b"".join(chunks))


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


def models_of(traced: Trace | Comparison[Trace]) -> Models:
    """Return the models of one or two traces by name. No model has two traces of the same text."""
    if isinstance(traced, Trace):
        return {traced.model_name: (_model_of(traced), (traced,))}
    one, other = traced.one, traced.other
    edited = one.edits.made or other.edits.made
    if one.network is other.network and one.ids.tolist() != other.ids.tolist() and not edited:
        return {one.model_name: (_model_of(one), (one, other))}
    name, other_name = _display_name(one), _display_name(other)
    other_name = other_name if other_name != name else f"{other_name} (2)"
    return {name: (_model_of(one), (one,)), other_name: (_model_of(other), (other,))}


def _display_name(trace: Trace) -> str:
    """Return the model's name with the number of edits in this trace."""
    count = len(trace.edits.made)
    edits = f" ({count} edit{'s' * (count > 1)})" if count else ""
    return f"{trace.model_name}{edits}"


def _model_of(trace: Trace) -> LanguageModel:
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    return LanguageModel(trace.network, trace.tokenizer, name=trace.model_name)


def run_in_background(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on an event loop in another thread, so that a running notebook cell does not block it."""
    return asyncio.run_coroutine_threadsafe(work, _background_loop())


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clearhead-notebook", daemon=True).start()
    return loop
