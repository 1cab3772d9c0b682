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

from clearhead.errors import UserError
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry, ServedModel

Models = dict[str, tuple[LanguageModel, tuple[Trace, ...]]]  # by name, each with traces of texts of its own
Result = TypeVar("Result")


@dataclass(frozen=True)
class InProcessResponse:
    status: int
    headers: dict[str, str]
    body: bytes


class InProcessClient:
    """Some models, and traces of theirs that were made in Python: each stands for its own text."""

    def __init__(self, models: Models) -> None:
        served = [ServedModel(name, model, traces=traces) for name, (model, traces) in models.items()]
        registry = ModelRegistry(served)
        self._app = make_api(registry, ServerMetrics(registry))

    def ask(self, method: str, path: str, body: str = "") -> InProcessResponse:
        """The answer, when it is there."""
        return run_in_background(self.answer(method, path, body, asyncio.Event())).result()

    async def answer(self, method: str, path: str, body: str, left: asyncio.Event) -> InProcessResponse:
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
        return InProcessResponse(status, headers, b"".join(parts))


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


def models_of(what: Trace | Comparison[Trace]) -> Models:
    """The models of one trace or two, as they are called: of one text a model never has two traces."""
    if isinstance(what, Trace):
        return {what.model_name: (_model_of(what), (what,))}
    one, other = what.one, what.other
    edited = one.edits.made or other.edits.made
    if one.network is other.network and one.ids.tolist() != other.ids.tolist() and not edited:
        return {one.model_name: (_model_of(one), (one, other))}
    name, beside = _called(one), _called(other)
    beside = beside if beside != name else f"{beside} (2)"
    return {name: (_model_of(one), (one,)), beside: (_model_of(other), (other,))}


def _called(trace: Trace) -> str:
    """The model's name, with how much was changed in it for this trace."""
    count = len(trace.edits.made)
    changes = f" ({count} change{'s' * (count > 1)})" if count else ""
    return f"{trace.model_name}{changes}"


def _model_of(trace: Trace) -> LanguageModel:
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    return LanguageModel(trace.network, trace.tokenizer, name=trace.model_name)


def run_in_background(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Beside what the notebook does: a cell that runs and a widget that asks do not wait for each other."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clearhead-notebook", daemon=True).start()
    return loop
