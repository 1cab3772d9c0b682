"""The page: a small one made here, the one that was built, and none."""

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
from clearhead.server.authentication import KEPT, SECURITY_HEADERS, AuthenticationMiddleware, Credentials
from clearhead.server.page import make_router
from clearhead.server.process import address
from tests import event_loop

BUDGET = 400_000  # bytes of JavaScript and styles, as gzip sends them
WEB = Path(__file__).parents[2] / "web"
TOKEN = "a-token-for-the-page"

built = pytest.mark.skipif(not has_site(), reason="the page was not built: pip install . builds it, with npm")


@pytest.fixture
def folder(tmp_path):
    files = {
        "index.html": b"<!doctype html><title>a page</title>",
        "icon.svg": b"<svg/>",
        "licences.md": "# ©".encode(),
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
    """Ask for a path, as it stands, of the routes of a folder behind their credentials."""

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
        ("/licences.md", "licences.md", "text/plain; charset=utf-8"),
        ("/assets/index-1a2B.js", "assets/index-1a2B.js", "text/javascript; charset=utf-8"),
        ("/assets/index-3c4D.css", "assets/index-3c4D.css", "text/css; charset=utf-8"),
        ("/assets/inter-5e6F.woff2", "assets/inter-5e6F.woff2", "font/woff2"),
        ("/assets/more/odd-7g8H.xyz", "assets/more/odd-7g8H.xyz", "application/octet-stream"),
    ],
)
def test_each_file_as_what_it_is(get, folder, path, name, kind):
    answer = get(folder, path)
    assert (answer.status_code, answer.content) == (200, (folder / name).read_bytes())
    assert answer.headers["content-type"] == kind
    assert {each: answer.headers[each] for each in SECURITY_HEADERS} == {
        **SECURITY_HEADERS,
        "Cache-Control": KEPT if path.startswith("/assets/") else "no-store",
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
def test_nothing_else_is_there(get, folder, path):
    answer = get(folder, path)
    assert answer.status_code in (307, 404)
    assert b"secret" not in answer.content
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_file_that_came_later_is_not_served_and_one_that_went_is(get, folder, registry):
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
def test_who_is_not_let_in_gets_no_file_and_keeps_nothing(get, folder, path, headers, status):
    answer = get(folder, path, **headers)
    assert answer.status_code == status
    assert answer.headers["Cache-Control"] == "no-store"


def test_without_a_page_one_is_told_what_is_here_and_how_to_build_it(get, tmp_path):
    answer = get(tmp_path, "/")
    assert answer.status_code == 200
    assert "Here are served: small." in answer.text
    assert "<code>pip install .</code> builds it" in answer.text
    assert get(tmp_path, "/assets/index.js").status_code == 404


def test_the_document_does_not_speak_of_the_page(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert all(path.startswith(("/v1/", "/api/", "/healthz", "/metrics", "/openapi.json")) for path in paths)


@built
def test_the_page_comes_with_all_that_it_asks_for(client):
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<style" not in answer.text
    assert not re.search(r"<script(?![^>]*\bsrc=)", answer.text)  # the policy would not run it
    asked = re.findall(r'(?:src|href)="(.*?)"', answer.text)
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
def test_the_page_is_small():
    made = [path for path in SITE.rglob("*") if path.suffix in (".js", ".css")]
    assert made
    assert sum(len(gzip.compress(path.read_bytes())) for path in made) < BUDGET


@built
def test_the_licences_of_what_is_bundled_are_there():
    said = (SITE / "licences.md").read_text(encoding="utf-8")
    assert "## svelte " in said
    packages = json.loads((WEB / "package.json").read_text())["devDependencies"]
    fonts = [name for name in packages if name.startswith("@fontsource")]
    for name in fonts:
        family = name.rpartition("/")[2]
        bundled = any(SITE.glob(f"assets/{family}-*.woff2"))
        assert (f"## {name} " in said) == bundled, name


@built
def test_the_page_comes_to_life_in_a_browser_under_the_policy(server, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium")
    done = subprocess.run(
        [
            *(chromium, "--headless", "--disable-gpu", f"--user-data-dir={tmp_path}"),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"),
            address("127.0.0.1", server.credentials),
        ],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert re.search(r'<div id="page">\s*<', done.stdout), done.stdout + done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints
