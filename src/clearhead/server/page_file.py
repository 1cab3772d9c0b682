"""The route for the page as one HTML file. The writer is passed in, because it itself uses the server."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from clearhead.api import page_file as api
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache

PageWriter = Callable[[api.PageFileRequest, Query], str]


def make_router(trace_cache: TraceCache, write: PageWriter) -> APIRouter:
    router = APIRouter(prefix="/api", include_in_schema=False)

    def page_file(body: api.PageFileRequest, query: Query) -> HTMLResponse:
        """Return an HTML file that opens in the page's current state and needs no server."""
        return HTMLResponse(write(body, query), headers={"Content-Disposition": "attachment"})

    add_query(
        router,
        trace_cache,
        "/page_file",
        page_file,
        models=lambda body: [body.model, *([body.other.model] if body.other else [])],
        responses=MODEL_ERRORS,
        response_model=None,
    )
    return router
