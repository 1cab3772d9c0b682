"""Other sites cannot change anything: no route accepts their requests, and none changes anything on a GET.

The routes are those of the OpenAPI document, so new ones are tested without being named here.
"""

import re
from itertools import cycle
from pathlib import Path

import pytest

from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions

ORIGINS = (
    "https://evil.example",
    "null",
    "http://127.0.0.1",
    "http://localhost:1",
    "file://",
    "http://evil@127.0.0.1",
)
CONTENT_TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded")
SAFE = ("GET", "HEAD")


@pytest.fixture(scope="module", params=["token", "no token"])
def server(request, registry, running_server, tmp_path_factory):
    """A server that can load, pull and train, with a token and without."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("runs")
    token = "a-token-for-the-tests-0123456789" if request.param == "token" else None
    library = ModelLibrary([folder], home, LoadOptions("cpu"))
    with running_server(registry, token=token, library=library) as made:
        made.folders = (home, folder)
        yield made


@pytest.fixture(scope="module")
def operations(server):
    """Every method and path of the document, with example values for the parameters in paths."""
    with server.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    found = [
        (method.upper(), re.sub(r"\{.*?\}", "small", path)) for path, item in paths.items() for method in item
    ]
    assert {"/api/train", "/api/pull", "/api/open", "/v1/completions"} <= {path for _, path in found}
    return found


def look(server):
    """What a request could change: files, models, runs, downloads, and the queue."""
    files = {path for folder in server.folders for path in Path(folder).rglob("*")}
    with server.client() as client:
        states = [client.get(path).json() for path in ("/api/models", "/api/runs", "/api/pulling")]
    return files, states, server.engine.running, server.engine.waiting


def is_unsafe(method):
    assert method not in ("HEAD", "OPTIONS", "TRACE"), "a new kind of route: test it here"
    return method != "GET"


def test_no_route_accepts_a_request_from_another_site(server, operations, submitted_anywhere):
    before = look(server)
    with server.client() as client:
        for method, path in operations:
            for origin, content_type in zip(ORIGINS, cycle(CONTENT_TYPES), strict=False):
                headers = {"Origin": origin, "Content-Type": content_type}
                response = client.request(method, path, headers=headers, content=b"{}")
                assert response.status_code == 403, (method, path, origin)
                assert response.json()["error"]["code"] == "forbidden_origin"
            own = client.request(method, path, headers={"Origin": server.url}, content=b"not JSON")
            assert own.status_code not in (401, 403), (method, path)
    assert look(server) == before
    assert submitted_anywhere == []


def test_browsers_are_not_allowed_to_read_from_another_site(server, operations):
    with server.client() as client:
        for method, path in operations:
            asked = {
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": "authorization",
            }
            for origin in (ORIGINS[0], server.url):
                response = client.options(path, headers={"Origin": origin, **asked})
                assert response.status_code in (403, 405)
                assert not [name for name in response.headers if name.startswith("access-control-")]


def test_no_route_changes_anything_on_a_get(server, operations, submitted_anywhere):
    """A link or a picture on another site, for which browsers send no Origin, can cause such a request."""
    before = look(server)
    unsafe = [path for method, path in operations if is_unsafe(method)]
    also_read = {path for method, path in operations if not is_unsafe(method)}
    assert len(unsafe) > 20
    with server.client() as client:
        for path in unsafe:
            for method in SAFE:
                for query in ("", "?model=small&name=small&prompt=a&_method=POST"):
                    override = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
                    response = client.request(method, path + query, headers=override)
                    expected = (200, 400, 404) if path in also_read else (404, 405)
                    assert response.status_code in expected, (method, path)
        for path in also_read:
            for method in SAFE:
                assert client.request(method, path).status_code in (200, 404, 405, 409), (method, path)
    assert look(server) == before
    assert submitted_anywhere == []


@pytest.fixture
def submitted_anywhere(server, monkeypatch):
    """What was submitted to the engine."""
    seen = []
    monkeypatch.setattr(server.engine, "submit", lambda *given: seen.append(given))
    return seen
