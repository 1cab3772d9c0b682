"""The explorer page at `/`: the files built from web/, read once at startup, each with its own route."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from clearhead.page.assets import SITE, has_site
from clearhead.server.authentication import IMMUTABLE
from clearhead.server.model_registry import ModelRegistry

# Python's mimetypes module depends on the machine's configuration.
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def make_router(registry: ModelRegistry, folder: Path = SITE) -> APIRouter:
    """Return a router with a route for each file, so that no part of a request is ever used as a path."""
    router = APIRouter(include_in_schema=False)
    if not has_site(folder):
        content = START_PAGE.format(models=html.escape(registry.loaded_names()))
        router.add_api_route("/", lambda: HTMLResponse(content), response_model=None)
        return router
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            url = "/" if name == "index.html" else f"/{name}"
            router.add_api_route(url, _serve_file(path, name.startswith("assets/")), response_model=None)
    return router


def _serve_file(path: Path, hashed: bool) -> Callable[[], Response]:
    """Return an endpoint for the file. Browsers may cache it forever if its name contains its hash."""
    content, media_type = path.read_bytes(), MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    headers = {"Cache-Control": IMMUTABLE} if hashed else {}
    return lambda: Response(content, headers=headers, media_type=media_type)


START_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Clearhead</title>
<h1>Clearhead</h1>
<p>Models: {models}.</p>
<p>The OpenAI-compatible API is at <code>/v1</code>, the inspection API at <code>/api</code>;
<a href="/openapi.json">openapi.json</a> describes both.</p>
<p>The explorer page is not installed. Run <code>pip install .</code> with npm available to build it.</p>
</html>
"""
