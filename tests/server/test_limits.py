import gzip
import json
import os
import socket
import threading
import time
import typing
from pathlib import Path

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import ValidationError

from clearhead.api import base, inspection, openai
from clearhead.generate.sampling import OPTIONS
from clearhead.server.limits import Limits
from tests.serving import make_model

MB = 2**20


def connect(server):
    made = socket.create_connection(("127.0.0.1", server.credentials.port), timeout=60)
    made.settimeout(60)
    return made


def head(server, more="", method="POST", path="/api/tokens"):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.credentials.port}\r\n"
        f"Authorization: Bearer {server.credentials.token}\r\nContent-Type: application/json\r\n{more}\r\n"
    ).encode()


def receive(connection):
    """Receive until the server closes the connection."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except (ConnectionResetError, BrokenPipeError):
        pass
    return got


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_content_length_is_limited(server):
    with connect(server) as connection:
        connection.sendall(head(server, f"Content-Length: {100 * MB}\r\n"))
        got = receive(connection)
    assert got.startswith(b"HTTP/1.1 413 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999999", "5, 6", "0x10"])
def test_invalid_content_length_is_rejected(server, length):
    with connect(server) as connection:
        connection.sendall(head(server, f"Content-Length: {length}\r\n"))
        assert receive(connection)[9:12] in (b"400", b"413")


WHOLE = '{"model": "small", "text": "a"}'
PIECES = f"{len(WHOLE):x}\r\n{WHOLE}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", PIECES),
        (f"Transfer-Encoding: chunked\r\nContent-Length: {len(WHOLE)}\r\n", PIECES),
        (f"Content-Length: {len(WHOLE)}\r\nContent-Length: 5\r\n", WHOLE),
        ("Transfer-Encoding: identity\r\n", WHOLE),
        ("Transfer-Encoding: gzip, chunked\r\n", PIECES),
        ("Transfer-Encoding: xchunked\r\n", PIECES),
        ("Transfer-Encoding : chunked\r\n", PIECES),
        ("Transfer-Encoding: chunked\r\n", f"-5\r\n{WHOLE}\r\n0\r\n\r\n"),
        ("Host: evil.com\r\nContent-Length: 0\r\n", ""),
        ("X-A: a\0b\r\nContent-Length: 0\r\n", ""),
        ("X-A: a\rb\r\nContent-Length: 0\r\n", ""),
    ],
)
def test_ambiguous_requests_close_the_connection(server, more, body):
    """The rest of the data may be part of the first request, so it gets no response."""
    after = head(server, method="GET", path="/healthz")
    with connect(server) as connection:
        connection.sendall(head(server, more) + body.encode() + after)
        got = receive(connection)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1") == 1
    headers, _, response = got.partition(b"\r\n\r\n")
    assert b"\r\ncontent-security-policy: " in headers.lower()
    assert json.loads(response)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "target", ["http://evil.com/healthz", "http://127.0.0.1/healthz", "evil.com:80", "*"]
)
def test_only_origin_form_request_targets_are_accepted(server, target):
    with connect(server) as connection:
        connection.sendall(head(server, "Connection: close\r\n", "GET", target))
        assert receive(connection).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": ""},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "br, identity"},
    ],
    ids=str,
)
def test_bodies_must_be_uncompressed_json(client, headers):
    for body in (WHOLE.encode(), gzip.compress(WHOLE.encode())):
        response = client.post("/api/tokens", content=body, headers=headers)
        assert response.status_code == 415
        assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/completions", {"prompt": [True] * 199_999}),
        ("/v1/completions", {"prompt": "a", "logit_bias": {str(-i): "" for i in range(100_000)}}),
        ("/v1/chat/completions", {"messages": [{"role": "", "content": [{}] * 64}] * 512}),
        ("/api/trace", {"text": [-1] * 199_999}),
        ("/api/trace", {"text": "a", "edits": [{"site": "final", "value": [""] * 500_000}]}),
        ("/api/trace", {"text": "a", "edits": [{"site": "final", "value": [[""] * 500_000]}]}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_validation_stops_at_the_first_error(client, path, more):
    """Validation blocks the event loop, so it must be fast."""
    body = json.dumps({"model": "small", **more}).encode()
    assert len(body) < 2 * MB
    started = time.process_time()
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert time.process_time() - started < 10  # reporting every error would take minutes
    assert response.status_code == 400


@pytest.mark.parametrize(
    ("path", "more", "where", "what"),
    [
        ("/v1/completions", {"prompt": [[1], [-1]]}, "prompt.1.0", "greater than or equal to 0"),
        ("/v1/completions", {"prompt": 5}, "prompt", "valid string"),
        ("/v1/completions", {"stop": ["a", ""]}, "stop.1", "expected a non-empty string"),
        ("/v1/completions", {"temperature": "1"}, "temperature", "valid number"),
        ("/v1/completions", {"logit_bias": {"x": 1}}, "logit_bias", "pattern"),
        ("/v1/chat/completions", {"messages": [{"role": "user"}]}, "messages.0.content", "required"),
        ("/api/trace", {"edits": [{"site": "final", "value": [[1, "a"]]}]}, "edits.0.value.0.1", "number"),
    ],
)
def test_errors_name_the_invalid_field(client, path, more, where, what):
    error = client.post(path, json={**GOOD[path][1], **more}).json()["error"]
    assert error["param"] in (where, f"{where}.x")
    assert error["message"].startswith(where)
    assert what in error["message"]


def test_json_errors_include_the_position(client):
    response = client.post("/api/tokens", content=WHOLE + "}", headers={"Content-Type": "application/json"})
    error = response.json()["error"]
    assert error["message"] == f"the body is not valid JSON: Extra data at character {len(WHOLE)}"
    assert error["param"] is None


def test_chunked_bodies_are_limited_without_buffering(server):
    before, most = resident(), 0
    piece = b"100000\r\n" + b" " * MB + b"\r\n"
    with connect(server) as connection:
        connection.sendall(head(server, "Transfer-Encoding: chunked\r\n"))
        sent = 0
        try:
            for _ in range(100):
                connection.sendall(piece)
                sent += 1
                most = max(most, resident())
        except OSError:  # the server closed the connection
            pass
        got = b"" if sent < 100 else receive(connection)
    assert sent < 100 or got.startswith(b"HTTP/1.1 413 ")
    assert most - before < 40 * MB
    server.until(lambda: any(" 413 " in line for line in server.log))


def test_slow_bodies_time_out(start):
    with start(Limits(body_timeout=0.3)) as server, connect(server) as connection:
        connection.sendall(head(server, "Content-Length: 100\r\n") + b'{"model"')
        got = receive(connection)
        assert got.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("received", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "])
def test_slow_headers_time_out(start, received):
    with start(Limits(header_timeout=0.3)) as server, connect(server) as connection:
        connection.sendall(received)
        ended = threading.Event()

        def drip():
            while received and not ended.wait(0.05):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        got = receive(connection)
        ended.set()
        thread.join()
        assert got == b""


def test_idle_connections_time_out(start):
    with start(Limits(header_timeout=2)) as server, connect(server) as connection:
        connection.sendall(head(server, method="GET", path="/healthz"))
        assert receive(connection).startswith(b"HTTP/1.1 200 ")


def test_clients_that_do_not_read_time_out(start):
    with start(Limits(header_timeout=0.5)) as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", server.credentials.port))
        started = time.monotonic()
        with pytest.raises(ConnectionError):  # noqa: PT012 (many requests, no response is read)
            while time.monotonic() - started < 60:
                connection.sendall(head(server, method="GET", path="/openapi.json"))


def test_header_size_is_limited(server):
    with connect(server) as connection:
        flood = b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(2000))
        try:
            connection.sendall(head(server, method="GET", path="/healthz")[:-2] + flood + b"\r\n")
        except OSError:
            return
        assert receive(connection)[9:10] in (b"", b"4")


def test_requests_over_the_limit_get_429(start):
    with start(Limits(max_requests=2, body_timeout=20)) as server, server.client() as client:
        held = [connect(server) for _ in range(2)]
        try:
            for connection in held:
                connection.sendall(head(server, "Content-Length: 100\r\n"))
            response = client.get("/healthz")
            while response.status_code == 200:  # until both requests have arrived
                response = client.get("/healthz")
        finally:
            for connection in held:
                connection.close()
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) >= 1
        assert response.json()["error"]["type"] == "rate_limit_error"
        server.until(lambda: client.get("/healthz").status_code == 200)


def test_connections_over_the_limit_are_closed(start):
    with start(Limits(max_connections=3)) as server:
        held = [connect(server) for _ in range(3)]
        try:
            with connect(server) as one_more:
                assert receive(one_more) == b""
        finally:
            for connection in held:
                connection.close()


def test_full_queue_returns_429(start, registry_of):
    registry = registry_of(slots=1, queue=1, small=make_model(n_context=4097))
    with start(registry=registry) as server, server.client() as client:
        body = {"model": "small", "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}}
        with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as first:
            lines = first.iter_lines()
            next(lines)
            with client.stream("POST", "/v1/completions", json={**body, "stream": True}):
                server.until(lambda: server.engine.waiting == 1)
                response = client.post("/v1/completions", json=body)
        assert response.status_code == 429
        assert response.headers["retry-after"]
        server.until(server.is_idle)


GOOD = {
    "/v1/completions": (openai.CompletionRequest, {"model": "small", "prompt": "a", "max_tokens": 1}),
    "/v1/chat/completions": (
        openai.ChatRequest,
        {"model": "small", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
    ),
    "/api/trace": (inspection.TraceRequest, {"model": "small", "text": "ab"}),
    "/api/site": (inspection.SiteRequest, {"model": "small", "text": "ab", "site": "logits"}),
    "/api/weight": (inspection.WeightRequest, {"model": "small", "name": "unembedding.W"}),
    "/api/tokens": (inspection.TokensRequest, {"model": "small", "text": "a"}),
}


def numeric(annotation):
    """Return whether a field accepts a number."""
    if annotation in (int, float):
        return True
    return any(
        numeric(part)
        for part in typing.get_args(annotation)[: 1 if hasattr(annotation, "__metadata__") else None]
    )


NUMBERS = [
    (path, name, field)
    for path, (model, _) in GOOD.items()
    for name, field in model.model_fields.items()
    if numeric(field.annotation)
]


def test_expected_numeric_fields_are_found():
    assert {"temperature", "top_k", "seed", "n", "max_tokens", "logprobs", "best_of", "count", "rows"} <= {
        name for _, name, _ in NUMBERS
    }


@pytest.mark.parametrize(
    "name", ["temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"]
)
def test_sampling_limits_are_those_of_python(name):
    option = OPTIONS[name]
    edges = [edge for edge in (option.minimum, option.maximum, option.above) if edge is not None]
    for value in (number for edge in edges for number in (edge - 1e-3, edge, edge + 1e-3)):
        try:
            openai.SamplingFields.model_validate({name: value})
            accepted = True
        except ValidationError:
            accepted = False
        # Clients may also send a top_p of 0, which is greedy decoding.
        assert accepted == (option.accepts(value) or (name == "top_p" and value == 0)), value


BAD = [
    "-1e400",
    "1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "-99999999999999999999",
    "1e31",
    '"1"',
    "true",
    "{}",
    "[[]]",
    "[NaN]",
    '["1"]',
    "[true, true]",
    '{"5": NaN}',
    '{"-1": 1}',
    '{"5": 1e9}',
    '"\\ud800"',
]


FINE = {
    "prompt": ('"1"', '["1"]'),
    "text": ('"1"',),
    "logit_bias": ("{}",),
}  # valid texts and an empty mapping


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, name, _ in NUMBERS])
def test_invalid_numbers_are_rejected(client, path, name):
    for bad in BAD:
        good = GOOD[path][1]
        if bad in FINE.get(name, ()):
            continue
        text = json.dumps({**good, name: "HERE"}).replace('"HERE"', bad)
        response = client.post(path, content=text, headers={"Content-Type": "application/json"})
        assert response.status_code == 400, (bad, response.text)
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"]


def find_bounds(annotation, found):
    for part in (annotation, *typing.get_args(annotation)):
        if part is not annotation:
            find_bounds(part, found)
        for metadata in getattr(part, "__metadata__", ()):
            found.extend(getattr(metadata, "metadata", [metadata]))
    return found


@pytest.mark.parametrize(("path", "name", "field"), NUMBERS, ids=lambda value: str(value)[:30])
def test_numbers_out_of_bounds_are_rejected(client, path, name, field):
    bounds = [
        bound
        for bound in find_bounds(field.annotation, list(field.metadata))
        if isinstance(bound, (Ge, Gt, Le, Lt))
    ]
    for bound in bounds:
        edge = next(iter(vars_of(bound)))
        step = 1 if isinstance(edge, int) or abs(edge) < 1e6 else abs(edge)
        beyond = edge - step if isinstance(bound, (Ge, Gt)) else edge + step
        for value in (beyond, [beyond], [[beyond]], {"5": beyond}, [beyond, beyond]):
            response = client.post(path, json={**GOOD[path][1], name: value})
            assert response.status_code == 400, (value, response.text)


def vars_of(bound):
    return [getattr(bound, name) for name in ("ge", "gt", "le", "lt") if hasattr(bound, name)]


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"a"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"model": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"a":' * 100_000,
        b'{"model": "\\ud800", "text": "a", "prompt": "a"}',
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_invalid_bodies_are_rejected(client, path, body):
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_unusual_texts_cause_no_server_error(client):
    for text in ("\x00", "\u202e\ufeff", "\U0010ffff", "a\u0300" * 100, "<|endoftext|>"):
        for path, (_, good) in GOOD.items():
            for name in ("text", "prompt", "model", "site", "name"):
                if name in good:
                    response = client.post(path, json={**good, name: text})
                    assert response.status_code in (200, 400, 404), (path, name, response.text)


def test_extreme_schemas_and_regexes_cause_no_server_error(client):
    deep = {"type": "object"}
    for _ in range(150):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
    for schema in (
        deep,
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:1/x"},
        {"$ref": "file:///etc/passwd"},
        {"type": "nothing"},
        {"enum": []},
        {"pattern": "("},
        {"type": "string", "pattern": "(a{1000}){1000}"},
        False,
    ):
        response_format = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        body = {**GOOD["/v1/chat/completions"][1], "response_format": response_format}
        response = client.post("/v1/chat/completions", json=body)
        assert response.status_code in (200, 400), (schema, response.text)
    for regex in ("(", "(a{1000}){1000}", "a{1000000}", "(?=a)b", "[^\\x00-\\x{10ffff}]"):
        response = client.post("/v1/completions", json={**GOOD["/v1/completions"][1], "regex": regex})
        assert response.status_code in (200, 400), (regex, response.text)


@pytest.mark.parametrize("stream", [False, True])
def test_regex_that_allows_only_a_very_long_text_is_refused_before_anything_is_generated(client, stream):
    body = {**GOOD["/v1/completions"][1], "regex": "(a{999}){999}", "stream": stream}
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 400
    assert "it is too large" in response.json()["error"]["message"]


NAMES = [
    "../small",
    "..",
    ".",
    "/etc/passwd",
    "small/../../x",
    "./small",
    "small/",
    "C:\\x",
    "~",
    "SMALL",
    "http://127.0.0.1/x",
    "gpt2",
    "small\x00",
]


@pytest.mark.parametrize("name", NAMES)
def test_model_names_are_not_treated_as_paths(client, name):
    for path, (_, good) in GOOD.items():
        response = client.post(path, json={**good, "model": name})
        assert response.status_code == 404, path
        assert response.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    "path",
    [
        "%2e%2e",
        "%2e%2e%2fsmall",
        "..%2fsmall",
        "%2fetc%2fpasswd",
        "small%00",
        "small/..",
        "small/x",
        "",
        "%ff",
    ],
)
def test_model_names_in_urls_are_not_treated_as_paths(server, path):
    with connect(server) as connection:
        connection.sendall(head(server, "Connection: close\r\n", "GET", f"/v1/models/{path}"))
        got = receive(connection)
    assert got[9:12] in (b"404", b"307" if path == "" else b"404"), got
    if got[9:12] == b"404":
        assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["type"] == "not_found_error"


def test_routing_errors_have_the_standard_error_format(client):
    for method, path, status, message in (
        ("GET", "/nowhere", 404, "expected one of /v1/models"),
        ("GET", "/v1/nowhere", 404, "expected one of /v1/models"),
        ("GET", "/docs", 404, "expected one of /v1/models"),
        ("PUT", "/v1/models", 405, "PUT /v1/models: expected GET"),
        ("GET", "/v1/completions", 405, "GET /v1/completions: expected POST"),
    ):
        response = client.request(method, path)
        assert response.status_code == status
        assert message in response.json()["error"]["message"]


def test_error_for_a_failed_model_contains_no_path(client):
    for path, (_, good) in GOOD.items():
        response = client.post(path, json={**good, "model": "broken"})
        assert response.status_code == 503
        assert "secret" not in response.text
    assert "secret" not in client.get("/api/models").text
    assert "secret" not in client.get("/").text


def test_completions_beyond_the_limits_are_rejected(client):
    for more in (
        {"prompt": ["a"] * 129},
        {"prompt": ["a"] * 33, "n": 4},
        {"prompt": "a" * (base.MAX_CHARACTERS + 1)},
        {"prompt": "a" * 129},
        {"prompt": [300]},
        {"prompt": [257]},
        {"prompt": []},
        {"prompt": [[]]},
        {"stop": ["a"] * 17},
        {"stop": ""},
        {"stop": [""]},
        {"logit_bias": {str(i): 1 for i in range(1025)}},
        {"logit_bias": {"999999999": 1}},
        {"best_of": 3},
        {"suffix": "a"},
    ):
        response = client.post("/v1/completions", json={**GOOD["/v1/completions"][1], **more})
        assert response.status_code == 400, more
