"""The page at `/`: the files that were built of web/, read once at the start, each at a fixed address."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from clearhead.page.assets import SITE, has_site
from clearhead.server.authentication import KEPT
from clearhead.server.model_registry import ModelRegistry

# Not by the machine's own table, which is another on every machine.
KINDS = {
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
    """A route for each file; what is named in a request is never a path."""
    router = APIRouter(include_in_schema=False)
    if not has_site(folder):
        said = START.format(models=html.escape(registry.names()))
        router.add_api_route("/", lambda: HTMLResponse(said), response_model=None)
        return router
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            address = "/" if name == "index.html" else f"/{name}"
            router.add_api_route(address, _give(path, name.startswith("assets/")), response_model=None)
    return router


def _give(path: Path, hashed: bool) -> Callable[[], Response]:
    """A file's answer. Where its name has its hash, it never changes, and a browser may keep it."""
    content, kind = path.read_bytes(), KINDS.get(path.suffix, "application/octet-stream")
    headers = {"Cache-Control": KEPT} if hashed else {}
    return lambda: Response(content, headers=headers, media_type=kind)


START = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Clearhead</title>
<h1>Clearhead</h1>
<p>Here are served: {models}.</p>
<p>The OpenAI routes are under <code>/v1</code>, our own under <code>/api</code>;
<a href="/openapi.json">openapi.json</a> describes all of them.</p>
<p>The page that shows what they compute was not built; <code>pip install .</code> builds it, with npm.</p>
</html>
"""
