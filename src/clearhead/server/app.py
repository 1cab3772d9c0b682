"""The server's ASGI application: the routes, wrapped in logging, authentication and limits."""

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
    lessons,
    model_responses,
    models,
    openings,
    page,
    page_file,
    reports,
    run_lessons,
    runs,
    text_vectors,
)
from clearhead.server.authentication import AuthenticationMiddleware, Credentials
from clearhead.server.chat_prompts import ChatTemplates
from clearhead.server.disconnect import ClientDisconnected
from clearhead.server.errors import APIError, handle_error
from clearhead.server.limits import Limits, LimitsMiddleware
from clearhead.server.metrics import RequestLogMiddleware, ServerMetrics
from clearhead.server.model_loader import ModelLibrary, ModelLoader
from clearhead.server.model_puller import ModelPuller
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.route_descriptions import COMMON_ERRORS, DESCRIPTION, make_openapi
from clearhead.server.run_registry import RunRegistry
from clearhead.server.trace_cache import TraceCache
from clearhead.server.training_process import TrainingManager
from clearhead.version import __version__


def make_api(
    registry: ModelRegistry,
    metrics: ServerMetrics,
    library: ModelLibrary | None = None,
    log: Callable[[str], object] = lambda _: None,
    write_page: page_file.PageWriter | None = None,
) -> FastAPI:
    """Return the routes and their OpenAPI document, without authentication or limits."""
    app = FastAPI(
        title="Clearhead",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        responses=COMMON_ERRORS,
    )
    templates = ChatTemplates(registry.plain_chat)
    app.include_router(completions.make_router(registry, metrics, templates))
    app.include_router(model_responses.make_router(registry, metrics, templates))
    trace_cache = TraceCache(registry)
    app.include_router(text_vectors.make_router(trace_cache))
    app.include_router(inspection.make_router(trace_cache))
    app.include_router(analysis.make_router(trace_cache))
    app.include_router(embeddings.make_router(trace_cache))
    app.include_router(head_scores.make_router(registry))
    app.include_router(lessons.make_router(trace_cache))
    app.include_router(openings.make_router(trace_cache))
    app.include_router(labs.make_router(registry))
    app.include_router(reports.make_router(registry))
    puller = ModelPuller(None if library is None else library.home, log)
    run_registry = RunRegistry(registry, None if library is None else library.folders)
    app.include_router(run_lessons.make_router(trace_cache, run_registry))
    loader = ModelLoader(registry, trace_cache, library, run_registry, log)
    app.include_router(models.make_router(loader, puller))
    manager = TrainingManager(run_registry, loader, None if library is None else library.options.device, log)
    app.include_router(runs.make_router(run_registry, manager))
    app.include_router(page.make_router(registry))
    if write_page is not None:
        app.include_router(page_file.make_router(trace_cache, write_page))

    # Coroutines, so that they respond even while every worker thread is busy.
    @app.get("/healthz", response_class=PlainTextResponse, tags=["server"])
    async def health() -> str:
        """Return ok if the server is running."""
        return "ok\n"

    @app.get("/metrics", response_class=PlainTextResponse, tags=["server"])
    async def show_metrics() -> Response:
        """Return metrics in the Prometheus text format."""
        return PlainTextResponse(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", tags=["server"])
    async def describe() -> dict[str, Any]:
        """Return this document."""
        return app.openapi()

    for error in (
        APIError,
        ClientDisconnected,
        Busy,
        UserError,
        RequestValidationError,
        HTTPException,
        Exception,
    ):
        app.add_exception_handler(error, handle_error)
    app.openapi = make_openapi(app)  # type: ignore[method-assign]
    return app


def make_app(
    registry: ModelRegistry,
    credentials: Credentials,
    limits: Limits | None = None,
    log: Callable[[str], object] = lambda _: None,
    library: ModelLibrary | None = None,
    write_page: page_file.PageWriter | None = None,
) -> ASGIApp:
    """Return the complete application. Without a library, only the models in the registry are served."""
    metrics = ServerMetrics(registry)
    api = make_api(registry, metrics, library, log, write_page)
    # Large bodies are accepted only on the route that takes a training text, and only if runs can be started.
    large = frozenset({"/api/train"} if library is not None and library.folders else ())
    limited = LimitsMiddleware(api, limits or Limits(), large)
    return RequestLogMiddleware(AuthenticationMiddleware(limited, credentials), metrics, log)
