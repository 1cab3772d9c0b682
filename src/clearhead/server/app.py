"""The server's application: its routes, and around them who may ask, how much, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.server import (
    analysis,
    completions,
    embeddings,
    head_scores,
    inspection,
    labs,
    models,
    overview,
    page,
    runs,
)
from clearhead.server.authentication import AuthenticationMiddleware, Credentials
from clearhead.server.disconnect import ClientDisconnected
from clearhead.server.errors import APIError, handle_error
from clearhead.server.limits import Limits, LimitsMiddleware
from clearhead.server.metrics import RequestLogMiddleware, ServerMetrics
from clearhead.server.model_loader import ModelLibrary, ModelLoader
from clearhead.server.model_puller import ModelPuller
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.responses import ABOUT, ALWAYS, document
from clearhead.server.run_registry import RunRegistry
from clearhead.server.trace_cache import TraceCache
from clearhead.server.training_process import TrainingManager
from clearhead.version import __version__


def make_api(
    registry: ModelRegistry,
    metrics: ServerMetrics,
    library: ModelLibrary | None = None,
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
    app.include_router(completions.make_router(registry, metrics))
    trace_cache = TraceCache(registry)
    app.include_router(inspection.make_router(trace_cache))
    app.include_router(overview.make_router(trace_cache))
    app.include_router(analysis.make_router(trace_cache))
    app.include_router(embeddings.make_router(trace_cache))
    app.include_router(head_scores.make_router(registry))
    app.include_router(labs.make_router(registry))
    puller = ModelPuller(None if library is None else library.home, log)
    run_list = RunRegistry(registry, None if library is None else library.places)
    loader = ModelLoader(registry, trace_cache, library, run_list, log)
    app.include_router(models.make_router(loader, puller))
    trainer = TrainingManager(run_list, loader, None if library is None else library.loader.device, log)
    app.include_router(runs.make_router(run_list, trainer))
    app.include_router(page.make_router(registry))

    # Answered where requests come in: neither waits for a thread, however many are at work.
    @app.get("/healthz", response_class=PlainTextResponse, tags=["server"])
    async def health() -> str:
        """Whether the server answers."""
        return "ok\n"

    @app.get("/metrics", response_class=PlainTextResponse, tags=["server"])
    async def show_metrics() -> Response:
        """Numbers for Prometheus."""
        return PlainTextResponse(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

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
        app.add_exception_handler(kind, handle_error)
    app.openapi = document(app)  # type: ignore[method-assign]
    return app


def make_app(
    registry: ModelRegistry,
    credentials: Credentials,
    limits: Limits | None = None,
    log: Callable[[str], object] = lambda _: None,
    library: ModelLibrary | None = None,
) -> ASGIApp:
    """Everything, as uvicorn runs it. Without an library, what is on the registry is all that is ever served."""
    metrics = ServerMetrics(registry)
    # Only where runs can be begun may a body be as long as a text to train on.
    roomy = frozenset({"/api/train"} if library is not None and library.places else ())
    limited = LimitsMiddleware(make_api(registry, metrics, library, log), limits or Limits(), roomy)
    return RequestLogMiddleware(AuthenticationMiddleware(limited, credentials), metrics, log)
