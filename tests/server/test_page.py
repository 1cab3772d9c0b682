"""Serving the page: a small test page, the built page, and no page."""

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from clearhead.page.assets import SITE, has_site
from clearhead.server.authentication import IMMUTABLE, SECURITY_HEADERS, AuthenticationMiddleware, Credentials
from clearhead.server.page import make_router
from clearhead.server.process import make_url
from tests import event_loop

BUDGET = 400_000  # bytes of gzipped JavaScript and CSS
WEB = Path(__file__).parents[2] / "web"
TOKEN = "a-token-for-the-page"

built = pytest.mark.skipif(
    not has_site(), reason="the page is not built: run `pip install .` with npm installed"
)


@pytest.fixture
def folder(tmp_path):
    files = {
        "index.html": b"<!doctype html><title>a page</title>",
        "icon.svg": b"<svg/>",
        "licenses.md": "# ©".encode(),
        "assets/index-1a2B.js": b"export {}",
        "assets/index-3c4D.css": b"a {}",
        "assets/inter-5e6F.woff2": b"wOF2\x00\xff",
        "assets/more/odd-7g8H.xyz": b"?",
    }
    for name, content in files.items():
        path = tmp_path / "page" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "page"


@pytest.fixture
def get(registry):
    """Request a raw path from the routes for a folder, behind authentication."""

    def ask(folder, path, **headers):
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.include_router(make_router(registry, folder))

        async def one():
            transport = httpx.ASGITransport(AuthenticationMiddleware(app, Credentials(TOKEN)))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get(path, headers={"Authorization": f"Bearer {TOKEN}", **headers})

        return event_loop.run(one())

    return ask


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/icon.svg", "icon.svg", "image/svg+xml"),
        ("/licenses.md", "licenses.md", "text/plain; charset=utf-8"),
        ("/assets/index-1a2B.js", "assets/index-1a2B.js", "text/javascript; charset=utf-8"),
        ("/assets/index-3c4D.css", "assets/index-3c4D.css", "text/css; charset=utf-8"),
        ("/assets/inter-5e6F.woff2", "assets/inter-5e6F.woff2", "font/woff2"),
        ("/assets/more/odd-7g8H.xyz", "assets/more/odd-7g8H.xyz", "application/octet-stream"),
    ],
)
def test_files_are_served_with_their_media_types(get, folder, path, name, kind):
    response = get(folder, path)
    assert (response.status_code, response.content) == (200, (folder / name).read_bytes())
    assert response.headers["content-type"] == kind
    assert {each: response.headers[each] for each in SECURITY_HEADERS} == {
        **SECURITY_HEADERS,
        "Cache-Control": IMMUTABLE if path.startswith("/assets/") else "no-store",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/assets/",
        "/assets",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/..%5csecret.txt",
        "/assets/index-1a2B.js/",
        "/assets/index-1a2B.js%00",
    ],
)
def test_other_paths_are_not_served(get, folder, path):
    response = get(folder, path)
    assert response.status_code in (307, 404)
    assert b"secret" not in response.content
    assert response.headers["Cache-Control"] == "no-store"


def test_files_are_read_at_startup(get, folder, registry):
    routes = make_router(registry, folder)
    (folder / "assets" / "late.js").write_text("late")
    (folder / "icon.svg").unlink()
    paths = {route.path for route in routes.routes}
    assert "/assets/late.js" not in paths
    (icon,) = (route for route in routes.routes if route.path == "/icon.svg")
    assert icon.endpoint().body == b"<svg/>"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.com"}, 403),
        ({"Origin": "https://evil.com"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/assets/index-1a2B.js"])
def test_files_require_authentication(get, folder, path, headers, status):
    response = get(folder, path, **headers)
    assert response.status_code == status
    assert response.headers["Cache-Control"] == "no-store"


def test_fallback_page_without_a_build(get, tmp_path):
    response = get(tmp_path, "/")
    assert response.status_code == 200
    assert "Models: small." in response.text
    assert "Run <code>pip install .</code>" in response.text
    assert get(tmp_path, "/assets/index.js").status_code == 404


def test_page_is_not_in_the_openapi_document(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert all(path.startswith(("/v1/", "/api/", "/healthz", "/metrics", "/openapi.json")) for path in paths)


@built
def test_page_is_self_contained(client):
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "<style" not in response.text
    assert not re.search(r"<script(?![^>]*\bsrc=)", response.text)  # the CSP forbids inline scripts
    asked = re.findall(r'(?:src|href)="(.*?)"', response.text)
    assert any(path.endswith(".js") for path in asked)
    for path in asked:
        assert re.fullmatch(r"\./[\w./-]+", path), path
        assert client.get(path.removeprefix(".")).status_code == 200
    for path in asked:
        if path.endswith(".css"):
            for inner in re.findall(r"url\((.*?)\)", client.get(path.removeprefix(".")).text):
                assert re.fullmatch(r"\./[\w.-]+\.woff2", inner), inner
                font = client.get(f"/assets/{inner}")
                assert (font.status_code, font.headers["content-type"]) == (200, "font/woff2")


@built
def test_page_size_is_within_budget():
    made = [path for path in SITE.rglob("*") if path.suffix in (".js", ".css")]
    assert made
    assert sum(len(gzip.compress(path.read_bytes())) for path in made) < BUDGET


@built
def test_licenses_cover_the_bundled_packages():
    licenses = (SITE / "licenses.md").read_text(encoding="utf-8")
    assert "## svelte " in licenses
    packages = json.loads((WEB / "package.json").read_text())["devDependencies"]
    fonts = [name for name in packages if name.startswith("@fontsource")]
    for name in fonts:
        family = name.rpartition("/")[2]
        bundled = any(SITE.glob(f"assets/{family}-*.woff2"))
        assert (f"## {name} " in licenses) == bundled, name


@built
def test_page_runs_in_a_browser(server, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    done = subprocess.run(
        [
            *(chromium, "--headless", "--disable-gpu", f"--user-data-dir={tmp_path}"),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"),
            make_url("127.0.0.1", server.credentials),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert re.search(r'<div id="page">\s*<', done.stdout), done.stdout + done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints
