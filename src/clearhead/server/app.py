"""The server's application: its routes, and around them who may ask, how much, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from clearhead import __version__
from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.server import (
    completions,
    heads,
    inspection,
    labs,
    models,
    overview,
    page,
    questions,
    runs,
    words,
)
from clearhead.server.access import Access, Credentials
from clearhead.server.description import ABOUT, ALWAYS, document
from clearhead.server.disconnect import ClientDisconnected
from clearhead.server.errors import APIError, answer_fault
from clearhead.server.limits import Bounds, Limits
from clearhead.server.model_loader import ModelLoader, Offer
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.pulling import Puller
from clearhead.server.record import Record, Recorder
from clearhead.server.run_list import RunRegistry
from clearhead.server.trace_cache import TraceCache
from clearhead.server.training import Trainer


def make_routes(
    shelf: ModelRegistry,
    record: Record,
    offer: Offer | None = None,
    log: Callable[[str], object] = lambda _: None,
) -> FastAPI:
    """The routes alone, and their document."""
    app = FastAPI(
        title="Clearhead",
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        responses=ALWAYS,
    )
    app.include_router(completions.make_routes(shelf, record))
    desk = TraceCache(shelf)
    app.include_router(inspection.make_routes(desk))
    app.include_router(overview.make_routes(desk))
    app.include_router(questions.make_routes(desk))
    app.include_router(words.make_routes(desk))
    app.include_router(heads.make_routes(shelf))
    app.include_router(labs.make_routes(shelf))
    puller = Puller(None if offer is None else offer.home, log)
    run_list = RunRegistry(shelf, None if offer is None else offer.places)
    collection = ModelLoader(shelf, desk, offer, run_list, log)
    app.include_router(models.make_routes(collection, puller))
    trainer = Trainer(run_list, collection, None if offer is None else offer.loader.device, log)
    app.include_router(runs.make_routes(run_list, trainer))
    app.include_router(page.make_routes(shelf))

    # Answered where requests come in: neither waits for a thread, however many are at work.
    @app.get("/healthz", response_class=PlainTextResponse, tags=["server"])
    async def health() -> str:
        """Whether the server answers."""
        return "ok\n"

    @app.get("/metrics", response_class=PlainTextResponse, tags=["server"])
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return PlainTextResponse(record.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", tags=["server"])
    async def describe() -> dict[str, Any]:
        """This document."""
        return app.openapi()

    for kind in (
        APIError,
        ClientDisconnected,
        Busy,
        UserError,
        RequestValidationError,
        HTTPException,
        Exception,
    ):
        app.add_exception_handler(kind, answer_fault)
    app.openapi = document(app)  # type: ignore[method-assign]
    return app


def make_app(
    shelf: ModelRegistry,
    door: Credentials,
    bounds: Bounds | None = None,
    log: Callable[[str], object] = lambda _: None,
    offer: Offer | None = None,
) -> ASGIApp:
    """Everything, as uvicorn runs it. Without an offer, what is on the shelf is all that is ever served."""
    record = Record(shelf)
    # Only where runs can be begun may a body be as long as a text to train on.
    roomy = frozenset({"/api/train"} if offer is not None and offer.places else ())
    limited = Limits(make_routes(shelf, record, offer, log), bounds or Bounds(), roomy)
    return Recorder(Access(limited, door), record, log)
