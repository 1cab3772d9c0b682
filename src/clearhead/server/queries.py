"""Routes that inspect a model: how each is registered and run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_type_hints

from fastapi import APIRouter, Request

from clearhead.api import inspection
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.trace_cache import TraceCache


@dataclass(frozen=True)
class Query:
    """A request that inspects a model, running in a worker thread."""

    request: Request
    trace_cache: TraceCache
    cancelled: threading.Event

    def model(self, name: str) -> LanguageModel:
        return self.trace_cache.registry.model(name)

    def trace(self, text: inspection.TextRequest) -> Trace:
        return self.trace_cache.trace(text, self.cancelled)

    def check_connected(self) -> None:
        """Raise ClientDisconnected if the client is gone. Long computations call this between their steps."""
        raise_if_cancelled(self.cancelled)


def _model_of(body: Any) -> Iterable[str]:
    return [body.model]


def add_query(
    router: APIRouter,
    trace_cache: TraceCache,
    path: str,
    answer: Callable[[Any, Query], Any],
    *,
    models: Callable[[Any], Iterable[str]] = _model_of,
    exclusive: bool = True,
    **options: Any,
) -> None:
    """Register `answer(body, query)` as a POST route.

    The annotations of `answer` declare the request body and the response; its name and docstring describe the
    route. It runs in a worker thread, one `exclusive` query at a time, while the models named by
    `models(body)` stay loaded, and it is canceled when the client disconnects. `options` are FastAPI's.
    """

    async def endpoint(request: Request, body: Any) -> Any:
        def work(cancelled: threading.Event) -> Any:
            return answer(body, Query(request, trace_cache, cancelled))

        with trace_cache.registry.in_use(*models(body)):
            if exclusive:
                return await trace_cache.run(request, work)
            return await until_disconnect(request, in_thread(work))

    types = get_type_hints(answer)
    endpoint.__name__, endpoint.__doc__ = answer.__name__, answer.__doc__
    endpoint.__annotations__ = {"request": Request, "body": types["body"], "return": types["return"]}
    router.add_api_route(path, endpoint, methods=["POST"], **options)
