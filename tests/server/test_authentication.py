import re

import httpx
import pytest

from clearhead.errors import UserError
from clearhead.server.authentication import KEPT, SECURITY_HEADERS, AuthenticationMiddleware, Credentials
from clearhead.server.process import address, make_credentials, open_socket
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
    ("POST", "/api/words"),
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
    """Every method and path that the application answers, however deep it was put in."""
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
def asked(server):
    """A request for each route, as enumerated from the application and from its document."""
    app = server.app
    known = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item} | {
        (method, path) for method, path in routes(app) if method != "HEAD"
    }
    assert known >= OURS
    return [(method, re.sub(r"\{.*?\}", "small", path)) for method, path in sorted(known)]


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "127.0.0.1.evil.com",
        "localhost.evil.com:8000",
        "evil.com:80@127.0.0.1",
        "127.0.0.1:x",
        "",
        "[::1",
        "127.0.0.1,evil.com",
    ],
)
def test_no_route_answers_to_another_host(server, client, asked, host):
    for method, path in asked:
        answer = client.request(method, path, headers={"Host": host}, json={})
        assert answer.status_code in (400, 403), (method, path)
        if answer.status_code == 403:
            assert answer.json()["error"]["code"] == "forbidden_host"


@pytest.mark.parametrize("origin", ["https://evil.com", "null", "http://127.0.0.1", "http://localhost:1", ""])
def test_no_route_answers_to_another_page(server, client, asked, origin):
    for method, path in asked:
        answer = client.request(method, path, headers={"Origin": origin}, json={})
        assert answer.status_code == 403, (method, path)
        assert answer.json()["error"]["code"] == "forbidden_origin"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic a-token-for-the-tests-0123456789"},
        {"Authorization": b"Bearer \xff\xfe"},
        {"Cookie": "clearhead-0=x; ="},
        [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer other")],
        [("Authorization", "Bearer other"), ("Authorization", f"Bearer {TOKEN}")],
    ],
)
def test_no_route_answers_without_the_token(server, asked, headers):
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        for method, path in asked:
            answer = stranger.request(method, path, headers=headers, json={})
            assert answer.status_code == 401, (method, path)
            assert answer.json()["error"]["code"] == "invalid_token"
            assert answer.headers["www-authenticate"] == "Bearer"


def test_every_answer_is_guarded(server, client, asked):
    for method, path in [*asked, ("GET", "/nowhere"), ("PUT", "/v1/models")]:
        for more in ({}, {"Host": "evil.com"}, {"Authorization": "Bearer wrong"}):
            answer = client.request(method, path, headers=more, json={})
            kept = path.startswith("/assets/") and answer.status_code == 200
            guards = {**SECURITY_HEADERS, "Cache-Control": KEPT if kept else "no-store"}
            assert {name: answer.headers.get(name) for name in guards} == guards, (method, path, more)
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


def test_our_own_page_is_let_in(client, server):
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        host = f"{name}:{server.credentials.port}"
        answer = client.get("/v1/models", headers={"Host": host, "Origin": f"http://{host}"})
        assert answer.status_code == 200


def test_the_token_in_the_address_becomes_a_cookie(server):
    with httpx.Client(trust_env=False) as browser:
        answer = browser.get(address("127.0.0.1", server.credentials))
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        given = answer.headers["set-cookie"]
        assert "HttpOnly" in given
        assert "samesite=strict" in given.lower()
        assert server.credentials.token not in given
        assert browser.get(f"{server.url}/v1/models").status_code == 200
        # Also who has the cookie is led on, so that the token stays in no address.
        again = browser.get(f"{server.url}/v1/models?a=1&token={server.credentials.token}")
        assert (again.status_code, again.headers["location"]) == (303, "/v1/models?a=1")


@pytest.mark.parametrize("query", ["token=wrong", "token=", "token={0}&token={0}", "token={0}x"])
def test_a_wrong_token_in_the_address_gives_none(server, query):
    answer = httpx.get(f"{server.url}/?{query.format(server.credentials.token)}", trust_env=False)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_token_in_the_address_does_not_let_a_post_in(server):
    url = f"{server.url}/api/tokens?token={server.credentials.token}"
    assert httpx.post(url, json={"model": "small", "text": "a"}, trust_env=False).status_code == 401


def test_cookies_of_others_are_refused(server):
    port = server.credentials.port
    others = [
        Credentials("another-token", port=port),
        Credentials(server.credentials.token, port=port + 1),
    ]
    for other in others:
        cookie = f"{other.cookie}={other.cookie_value}"
        answer = httpx.get(f"{server.url}/v1/models", headers={"Cookie": cookie}, trust_env=False)
        assert answer.status_code == 401
    mine = f"{server.credentials.cookie}={server.credentials.token}"  # the token is no cookie
    assert httpx.get(f"{server.url}/", headers={"Cookie": mine}, trust_env=False).status_code == 401


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
def test_the_way_on_leads_nowhere_else(server, path):
    with httpx.Client(trust_env=False) as browser:
        answer = browser.get(f"{server.url}{path}?token={server.credentials.token}")
    assert answer.status_code == 303
    where = answer.headers["location"]
    assert re.fullmatch(r"/([^/\\\s].*)?", where), where
    assert answer.headers.get_list("set-cookie")[0].startswith(server.credentials.cookie)
    assert len(answer.headers.get_list("set-cookie")) == 1


def ask(access, kind="http", headers=(), query=b""):
    """AuthenticationMiddleware itself, without a server in between that might tidy up."""
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
    event_loop.run(access(scope, receive, send))
    return sent


@pytest.fixture
def access():
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
def test_nothing_comes_past_access(access, headers):
    status = ask(access, headers=headers)[0]["status"]
    assert status == (401 if headers == [("host", "localhost:8000")] else 403)
    assert ask(access, "websocket", headers) == [{"type": "websocket.close", "code": 1008}]


def test_websockets_take_no_token_from_the_address(access):
    host = [("host", "localhost:8000")]
    assert ask(access, "websocket", host, b"token=secret") == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_who_belongs_here_comes_in(access, kind):
    assert ask(access, kind, [("host", "[::1]:8000"), BEARER]) == [{"type": "inside"}]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "", "127.1"])
def test_nothing_beyond_this_machine_without_a_token(host):
    with pytest.raises(UserError, match="token only"):
        open_socket(host, 0, None)


def test_a_port_in_use_is_told(server):
    with pytest.raises(UserError, match="choose another --port"):
        open_socket("127.0.0.1", server.credentials.port, "token")


@pytest.mark.parametrize("host", ["fe80::1%nosuch", "a..b", "192.0.2.1"])
def test_a_host_that_is_not_here_is_told(host):
    with pytest.raises(UserError, match="choose another --host"):
        open_socket(host, 0, "token")


def test_loopback_needs_no_token(start):
    with start(token=None) as open_server, httpx.Client(trust_env=False) as anyone:
        assert anyone.get(f"{open_server.url}/v1/models").status_code == 200
        forged = anyone.get(f"{open_server.url}/v1/models", headers={"Origin": "https://evil.com"})
        assert forged.status_code == 403


def test_the_door_knows_the_names_that_it_was_given():
    with open_socket("127.0.0.1", 0, "token") as opened:
        assert "models.example" in make_credentials("127.0.0.1", opened, "token", ["Models.Example"]).hosts
        assert "10.0.0.5" in make_credentials("10.0.0.5", opened, "token").hosts
        assert "0.0.0.0" not in make_credentials("0.0.0.0", opened, "token").hosts


@pytest.mark.parametrize(
    "method", ["HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "PROPFIND", "QUERY"]
)
def test_no_other_method_does_anything(client, asked, method):
    for known, path in asked:
        answer = client.request(method, path, json={})
        assert answer.status_code == 405, path
        assert answer.headers["allow"] == known
        assert "access-control-allow-origin" not in answer.headers
        assert method == "HEAD" or answer.json()["error"]["message"]


def test_a_person_without_the_token_is_told_in_a_page(server):
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        page = stranger.get("/?block=3", headers={"Accept": "text/html,*/*"})
        assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert "printed at the start" in page.text
        assert page.headers["www-authenticate"] == "Bearer"
        assert stranger.get("/").json()["error"]["code"] == "invalid_token"  # a program
        asked = stranger.post("/api/trace", json={}, headers={"Accept": "text/html"})
        assert asked.json()["error"]["code"] == "invalid_token"
