import re

import httpx
import pytest

from clearhead.errors import UserError
from clearhead.server.authentication import IMMUTABLE, SECURITY_HEADERS, AuthenticationMiddleware, Credentials
from clearhead.server.process import make_credentials, make_url, open_socket
from tests import event_loop

TOKEN = "a-token-for-the-tests-0123456789"
OURS = {
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/api/models"),
    ("POST", "/api/tokens"),
    ("POST", "/api/token_texts"),
    ("POST", "/api/trace"),
    ("POST", "/api/site"),
    ("POST", "/api/weight"),
    ("POST", "/api/open"),
    ("POST", "/api/pull"),
    ("POST", "/api/pull/cancel"),
    ("GET", "/api/pulling"),
    ("POST", "/api/heads"),
}


def routes(app):
    """Return every method and path of the application, including nested routers."""
    found = set()

    def walk(listed, prefix=""):
        for route in listed:
            inner = getattr(route, "routes", None) or getattr(
                getattr(route, "original_router", None), "routes", None
            )
            if inner:
                walk(inner, prefix)
            else:
                found.update((method, prefix + route.path) for method in route.methods)

    walk(app.routes)
    return found


@pytest.fixture(scope="module")
def requests(server):
    """One request for each route of the application and of its OpenAPI document."""
    app = server.app
    known = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item} | {
        (method, path) for method, path in routes(app) if method != "HEAD"
    }
    assert known >= OURS
    return [(method, re.sub(r"\{.*?\}", "small", path)) for method, path in sorted(known)]


def on_routes(values):
    """Try the first value on every route, and the others on every seventh."""
    return [(value, 7 if i else 1) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("host", "step"),
    on_routes(
        [
            "evil.com",
            "127.0.0.1.evil.com",
            "localhost.evil.com:8000",
            "evil.com:80@127.0.0.1",
            "127.0.0.1:x",
            "",
            "[::1",
            "127.0.0.1,evil.com",
        ]
    ),
)
def test_every_route_rejects_unknown_hosts(server, client, requests, host, step):
    for method, path in requests[::step]:
        response = client.request(method, path, headers={"Host": host}, json={})
        assert response.status_code in (400, 403), (method, path)
        if response.status_code == 403:
            assert response.json()["error"]["code"] == "forbidden_host"


@pytest.mark.parametrize(
    ("origin", "step"),
    on_routes(["https://evil.com", "null", "http://127.0.0.1", "http://localhost:1", ""]),
)
def test_every_route_rejects_other_origins(server, client, requests, origin, step):
    for method, path in requests[::step]:
        response = client.request(method, path, headers={"Origin": origin}, json={})
        assert response.status_code == 403, (method, path)
        assert response.json()["error"]["code"] == "forbidden_origin"


@pytest.mark.parametrize(
    ("headers", "step"),
    on_routes(
        [
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer"},
            {"Authorization": "Basic a-token-for-the-tests-0123456789"},
            {"Authorization": b"Bearer \xff\xfe"},
            {"Cookie": "clearhead-0=x; ="},
            [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer other")],
            [("Authorization", "Bearer other"), ("Authorization", f"Bearer {TOKEN}")],
        ]
    ),
)
def test_every_route_requires_the_token(server, requests, headers, step):
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as visitor:
        for method, path in requests[::step]:
            response = visitor.request(method, path, headers=headers, json={})
            assert response.status_code == 401, (method, path)
            assert response.json()["error"]["code"] == "invalid_token"
            assert response.headers["www-authenticate"] == "Bearer"


def test_every_response_has_security_headers(server, client, requests):
    for method, path in [*requests, ("GET", "/nowhere"), ("PUT", "/v1/models")]:
        for more in ({}, {"Host": "evil.com"}, {"Authorization": "Bearer wrong"}):
            response = client.request(method, path, headers=more, json={})
            cached = path.startswith("/assets/") and response.status_code == 200
            guards = {**SECURITY_HEADERS, "Cache-Control": IMMUTABLE if cached else "no-store"}
            assert {name: response.headers.get(name) for name in guards} == guards, (method, path, more)
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


def test_same_origin_requests_are_accepted(client, server):
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        host = f"{name}:{server.credentials.port}"
        response = client.get("/v1/models", headers={"Host": host, "Origin": f"http://{host}"})
        assert response.status_code == 200


def test_token_in_url_sets_a_cookie(server):
    with httpx.Client(trust_env=False, timeout=60) as browser:
        response = browser.get(make_url("127.0.0.1", server.credentials))
        assert (response.status_code, response.headers["location"]) == (303, "/")
        cookie = response.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert server.credentials.token not in cookie
        assert browser.get(f"{server.url}/v1/models").status_code == 200
        # A client with the cookie is redirected too: the token should not stay in the address bar.
        again = browser.get(f"{server.url}/v1/models?a=1&token={server.credentials.token}")
        assert (again.status_code, again.headers["location"]) == (303, "/v1/models?a=1")


@pytest.mark.parametrize("query", ["token=wrong", "token=", "token={0}&token={0}", "token={0}x"])
def test_wrong_token_in_url_sets_no_cookie(server, query):
    response = httpx.get(
        f"{server.url}/?{query.format(server.credentials.token)}", trust_env=False, timeout=60
    )
    assert response.status_code == 401
    assert "set-cookie" not in response.headers


def test_token_in_url_is_ignored_for_post(server):
    url = f"{server.url}/api/tokens?token={server.credentials.token}"
    assert (
        httpx.post(url, json={"model": "small", "text": "a"}, trust_env=False, timeout=60).status_code == 401
    )


def test_cookies_from_other_servers_are_rejected(server):
    port = server.credentials.port
    others = [
        Credentials("another-token", port=port),
        Credentials(server.credentials.token, port=port + 1),
    ]
    for other in others:
        cookie = f"{other.cookie}={other.cookie_value}"
        response = httpx.get(
            f"{server.url}/v1/models", headers={"Cookie": cookie}, trust_env=False, timeout=60
        )
        assert response.status_code == 401
    mine = f"{server.credentials.cookie}={server.credentials.token}"  # the token itself is not a valid cookie
    assert (
        httpx.get(f"{server.url}/", headers={"Cookie": mine}, trust_env=False, timeout=60).status_code == 401
    )


@pytest.mark.parametrize(
    "path",
    [
        "//evil.com",
        "///evil.com",
        "/%2fevil.com",
        "/%5cevil.com",
        "/%5c/evil.com",
        "/%09/evil.com",
        "/%09///evil.com",
        "/%0a///evil.com",
        "/%0d%0aSet-Cookie:%20a=b",
        "/https://evil.com",
        "/%3f//evil.com",
        "/@evil.com",
    ],
)
def test_redirects_stay_on_this_server(server, path):
    with httpx.Client(trust_env=False, timeout=60) as browser:
        response = browser.get(f"{server.url}{path}?token={server.credentials.token}")
    assert response.status_code == 303
    where = response.headers["location"]
    assert re.fullmatch(r"/([^/\\\s].*)?", where), where
    assert response.headers.get_list("set-cookie")[0].startswith(server.credentials.cookie)
    assert len(response.headers.get_list("set-cookie")) == 1


def call(middleware, kind="http", headers=(), query=b""):
    """Call the middleware directly, without a server that might normalize the request."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": f"{kind}.disconnect"}

    scope = {
        "type": kind,
        "method": "GET",
        "path": "/",
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    event_loop.run(middleware(scope, receive, send))
    return sent


@pytest.fixture
def middleware():
    async def inside(scope, receive, send):
        await send({"type": "inside"})

    return AuthenticationMiddleware(inside, Credentials("secret", port=8000))


BEARER = ("authorization", "Bearer secret")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [BEARER],
        [("host", "localhost:8000"), ("host", "localhost:8000"), BEARER],
        [("host", "localhost:8000"), ("host", "evil.com"), BEARER],
        [("host", "evil.com"), BEARER],
        [("host", "localhost:8000"), ("origin", "http://evil.com"), BEARER],
        [
            ("host", "localhost:8000"),
            ("origin", "http://localhost:8000"),
            ("origin", "http://evil.com"),
            BEARER,
        ],
        [("host", "localhost:8000")],
    ],
)
def test_middleware_rejects_invalid_requests(middleware, headers):
    status = call(middleware, headers=headers)[0]["status"]
    assert status == (401 if headers == [("host", "localhost:8000")] else 403)
    assert call(middleware, "websocket", headers) == [{"type": "websocket.close", "code": 1008}]


def test_websockets_ignore_a_token_in_the_url(middleware):
    host = [("host", "localhost:8000")]
    assert call(middleware, "websocket", host, b"token=secret") == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_middleware_accepts_authenticated_requests(middleware, kind):
    assert call(middleware, kind, [("host", "[::1]:8000"), BEARER]) == [{"type": "inside"}]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "127.1"])
def test_non_loopback_hosts_require_a_token(host):
    with pytest.raises(UserError, match="a token is required"):
        open_socket(host, 0, None)


@pytest.mark.parametrize("host", ["example.com", "host.invalid", ""])
def test_host_names_are_rejected_without_a_token(host):
    """It does not matter whether this machine can resolve them."""
    with pytest.raises(UserError, match=r"a token is required|choose another --host"):
        open_socket(host, 0, None)


def test_port_in_use_raises(server):
    with pytest.raises(UserError, match="choose another --port"):
        open_socket("127.0.0.1", server.credentials.port, "token")


@pytest.mark.parametrize("host", ["fe80::1%nosuch", "a..b", "192.0.2.1"])
def test_unavailable_host_raises(host):
    with pytest.raises(UserError, match="choose another --host"):
        open_socket(host, 0, "token")


def test_loopback_needs_no_token(start):
    with start(token=None) as open_server, httpx.Client(trust_env=False, timeout=60) as anyone:
        assert anyone.get(f"{open_server.url}/v1/models").status_code == 200
        forged = anyone.get(f"{open_server.url}/v1/models", headers={"Origin": "https://evil.com"})
        assert forged.status_code == 403


def test_credentials_include_allowed_hosts():
    with open_socket("127.0.0.1", 0, "token") as opened:
        assert "models.example" in make_credentials("127.0.0.1", opened, "token", ["Models.Example"]).hosts
        assert "10.0.0.5" in make_credentials("10.0.0.5", opened, "token").hosts
        assert "0.0.0.0" not in make_credentials("0.0.0.0", opened, "token").hosts


@pytest.mark.parametrize(
    ("method", "step"),
    on_routes(["PUT", "HEAD", "OPTIONS", "TRACE", "DELETE", "PATCH", "PROPFIND", "QUERY"]),
)
def test_other_methods_are_not_allowed(client, requests, method, step):
    for known, path in requests[::step]:
        response = client.request(method, path, json={})
        assert response.status_code == 405, path
        assert response.headers["allow"] == known
        assert "access-control-allow-origin" not in response.headers
        assert method == "HEAD" or response.json()["error"]["message"]


def test_browsers_without_the_token_get_an_html_page(server):
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as visitor:
        page = visitor.get("/?block=3", headers={"Accept": "text/html,*/*"})
        assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert "printed when the server started" in page.text
        assert page.headers["www-authenticate"] == "Bearer"
        assert visitor.get("/").json()["error"]["code"] == "invalid_token"  # not a browser
        posted = visitor.post("/api/trace", json={}, headers={"Accept": "text/html"})
        assert posted.json()["error"]["code"] == "invalid_token"
