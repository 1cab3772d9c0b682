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
from clearhead.server import completions, inspection, overview, page
from clearhead.server.access import Access, Door
from clearhead.server.faults import Refused, answer_fault
from clearhead.server.leaving import Left
from clearhead.server.limits import Bounds, Limits
from clearhead.server.record import Record, Recorder
from clearhead.server.shelf import Shelf
from clearhead.views import wire

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": wire.Refusal, "description": what}
    for status, what in (
        (400, "What was asked cannot be done."),
        (401, "The token is missing or wrong."),
        (403, "The Host or the Origin is not ours."),
        (404, "There is no such model or route."),
        (408, "The body did not come in time."),
        (413, "The body is too long."),
        (429, "Too much is going on; the header Retry-After says when to come back."),
        (503, "The model could not be loaded."),
    )
}


def make_routes(shelf: Shelf, record: Record) -> FastAPI:
    """The routes alone, and their document."""
    app = FastAPI(
        title="Clearhead",
        version=__version__,
        description="Language models, and every step of what they compute.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    app.include_router(completions.make_routes(shelf, record))
    desk = inspection.Desk(shelf)
    app.include_router(inspection.make_routes(desk))
    app.include_router(overview.make_routes(desk))
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

    for kind in (Refused, Left, Busy, UserError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer_fault)
    app.openapi = _document(app)  # type: ignore[method-assign]
    return app


def make_app(
    shelf: Shelf, door: Door, bounds: Bounds | None = None, log: Callable[[str], object] = lambda _: None
) -> ASGIApp:
    """Everything, as uvicorn runs it."""
    record = Record(shelf)
    limited = Limits(make_routes(shelf, record), bounds or Bounds())
    return Recorder(Access(limited, door), record, log)


def _document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """The OpenAPI document, in which what is not understood is a 400 of our shape, as it is."""
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            made.update(FastAPI.openapi(app))
            for path in made["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            schemas = made["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"token": []}]
        return made

    return document
