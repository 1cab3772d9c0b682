"""The server as a process. Startup takes seconds, so each test checks many things."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from clearhead.errors import UserError
from clearhead.language_model import load
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import make_model

LONG = {"max_tokens": 4096, "seed": 1, "stream": True}
# Never finishes, and is stopped by the CPU time limit.
SLOW_TEMPLATE = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


class Process:
    """`clearhead serve` as a user runs it, with its own temporary folders."""

    def __init__(self, place, *arguments, port=0):
        self.places = [place / name for name in ("temporary", "person", "work")]
        for each in self.places:
            each.mkdir(parents=True, exist_ok=True)
        self.log = place / f"output-{time.monotonic_ns()}"
        temporary, person, work = self.places
        command = [sys.executable, "-m", "clearhead", "serve", *map(str, arguments), "--device", "cpu"]
        with self.log.open("wb") as output:
            self.popen = subprocess.Popen(
                [*command, "--port", str(port)],
                stdout=output,
                stderr=output,
                cwd=work,
                env={**os.environ, "TMPDIR": str(temporary), "HOME": str(person)},
                start_new_session=True,
            )

    @property
    def output(self):
        return self.log.read_text()

    def open(self):
        """Wait for the server to print its URL."""
        wait_for(lambda: re.search(r"^open http", self.output, re.MULTILINE) or self.popen.poll() is not None)
        found = re.search(r"^open (http\S+)", self.output, re.MULTILINE)
        assert found, self.output
        self.address = found[1]
        self.token = self.address.partition("token=")[2]
        return self

    def client(self):
        headers = {"Authorization": f"Bearer {self.token}"}
        url = self.address.partition("/?")[0]
        return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60)

    def descendants(self):
        """Return the live processes in the server's session: the server and its descendants."""
        return [pid for pid, session, state in _processes() if session == self.popen.pid and state != "Z"]

    def left_behind(self):
        return [path for place in self.places for path in place.rglob("*")]


def _processes():
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # exited in the meantime
            continue
        yield int(path.parent.name), int(fields[3]), fields[0]


def wait_for(holds, seconds=60):
    until = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < until, "the condition never held"
        time.sleep(0.02)
    return found


@contextmanager
def process(*arguments, **options):
    started = Process(*arguments, **options)
    try:
        yield started
    finally:
        if started.popen.poll() is None:
            started.popen.kill()
        started.popen.wait(60)


@contextmanager
def streaming(client, body):
    """Yield the lines of a stream that has started."""
    with client.stream("POST", "/v1/completions", json=body) as response:
        assert response.status_code == 200
        lines = response.iter_lines()
        for _ in range(3):
            next(lines)
        yield lines


def endless(folder, prompt="a", seconds=60):
    """Return a request whose generation does not end on its own."""
    bias = {str(i): -100 for i in load(folder, "cpu").tokenizer.end_ids}
    return {
        "model": folder.name,
        "prompt": prompt,
        "logit_bias": bias,
        "seconds": seconds,
        **LONG,
    }


def end(started, client, body, number):
    """Signal the server during a stream: the stream must finish, and then the server must exit."""
    with streaming(client, body) as lines:
        started.popen.send_signal(number)
        rest = [line for line in lines if line]
    assert len(rest) > 2
    assert rest[-1] == "data: [DONE]"
    assert json.loads(rest[-2].removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    with pytest.raises(httpx.TransportError):
        client.get("/healthz")
    assert started.popen.wait(60) == 0, started.output
    assert started.output.rstrip().endswith("ended")
    assert "Traceback" not in started.output


@pytest.mark.slow
def test_start_serve_and_shut_down(model_folder, tmp_path):
    """Two of three models fail to load; clients send bad requests, disconnect and stream; then SIGTERM."""
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "config.json").write_text("{")
    body = {"model": "small", "prompt": "secretprompt", "max_tokens": 2}
    with process(tmp_path / "place", bad, model_folder, tmp_path / "nowhere") as started:
        started.open()
        assert "bad could not be loaded" in started.output
        assert len(started.token) >= 32
        assert httpx.get(started.address, trust_env=False, timeout=60).status_code == 303
        with started.client() as client:
            # Models that fail to load do not affect the others.
            assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["small"]
            assert client.post("/v1/completions", json=body).status_code == 200
            rejected = client.post("/v1/completions", json={**body, "model": "bad"})
            assert rejected.status_code == 503
            assert str(tmp_path) not in rejected.text
            # All of these are logged without their contents.
            client.get(f"/v1/models/secretname?token={started.token}")
            client.get("/v1/models/secretname?secretquery=1")
            client.get("/secretpath")
            client.request("SECRETMETHOD", "/")
            client.post("/v1/completions", json={**body, "top_p": 5})
            client.post("/api/tokens", content=b"secretbody")
            client.get("/", headers={"Host": "secrethost"})
            # Generation stops when a client disconnects.
            with started.client() as other, streaming(other, endless(model_folder)):
                pass
            end(started, client, endless(model_folder, "secretprompt", seconds=2), signal.SIGTERM)
        log = started.output.partition(started.address)[2]
        assert not started.left_behind()
    moment = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d "
    assert len(re.findall(moment + r"(?:GET|POST|-) \S+ \d+ \d+ ms", log, re.MULTILINE)) == 13, log
    assert re.search(r"POST /v1/completions 200 \d+ ms \S+ \d+ prompt \d+ completion tokens", log)
    assert started.token not in log
    assert "secret" not in started.output.lower()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="requires /proc to look up processes")
@pytest.mark.slow
def test_kill_and_restart(copied_model, tmp_path):
    """SIGKILL during a stream and the rendering of a template; then a second server until SIGINT."""
    (copied_model / "clearhead.json").unlink()  # it has a hash of the file changed here
    settings = copied_model / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": SLOW_TEMPLATE}))
    before = {path: path.read_bytes() for path in copied_model.rglob("*")}
    body, place = endless(copied_model), tmp_path / "place"

    with process(place, copied_model) as started, started.open().client() as client:

        def chat():
            asked = {"model": copied_model.name, "messages": [{"role": "user", "content": "a"}]}
            with started.client() as other, suppress(httpx.TransportError):
                while True:  # each request times out
                    other.post("/v1/chat/completions", json=asked)

        chatting = threading.Thread(target=chat)
        with streaming(client, body) as lines:
            chatting.start()
            wait_for(lambda: len(started.descendants()) > 1)
            started.popen.kill()
            with pytest.raises(httpx.TransportError):
                list(lines)
        chatting.join()

    port = httpx.URL(started.address).port
    with process(place, copied_model, port=port) as again:
        wait_for(lambda: not started.descendants())
        assert httpx.URL(again.open().address).port == port
        assert again.token != started.token
        with again.client() as client:
            assert client.get("/healthz").text == "ok\n"
            end(again, client, {**body, "seconds": 2}, signal.SIGINT)
        assert not again.descendants()
    assert {path: path.read_bytes() for path in copied_model.rglob("*")} == before
    assert not again.left_behind()


def test_error_when_no_model_loads(tmp_path):
    with pytest.raises(UserError, match="none of the models"):
        load_models([str(tmp_path / "nowhere"), str(tmp_path / "elsewhere")], LoadOptions("cpu"))
    with pytest.raises(UserError, match="no such folder or file"):
        load_models([str(tmp_path / "nowhere")], LoadOptions("cpu"))


def test_duplicate_model_names_get_a_suffix(model_folder):
    registry = load_models([str(model_folder), f"{model_folder}/"], LoadOptions("cpu", slots=1))
    try:
        assert list(registry.served) == ["small", "small-2"]
    finally:
        registry.close(cancel=True)


def test_generation_is_canceled_after_the_grace_period(registry_of, running_server, caplog):
    forever = {"model": "small", "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}, "seed": 1}
    plain = []
    registry = registry_of(small=make_model(n_context=4097))
    with running_server(registry, grace=0.5) as server, server.client() as client:
        asking = threading.Thread(target=lambda: plain.append(client.post("/v1/completions", json=forever)))
        asking.start()
        with client.stream("POST", "/v1/completions", json={**forever, "stream": True}) as stream:
            lines = stream.iter_lines()
            next(lines)
            server.until(lambda: server.engine.running == 2)
            server.shut_down()
            rest = [line for line in lines if line]
        asking.join(60)
    *_, last, done = rest
    assert done == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    response = plain[0]
    assert response.status_code == 200
    assert 0 < response.json()["usage"]["completion_tokens"] < 4096
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


LONG_TEXT = {"type": "object", "properties": {"a": {"type": "string", "minLength": 9000}}, "required": ["a"]}
FORMAT = {"name": "a", "schema": LONG_TEXT}
ENDLESS = {
    "completions": {"prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}},
    "chat/completions": {
        "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 4096,
        "response_format": {"type": "json_schema", "json_schema": FORMAT},
    },
    "responses": {
        "input": "a",
        "max_output_tokens": 4096,
        "text": {"format": {"type": "json_schema", **FORMAT}},
    },
}


@pytest.mark.parametrize("route", ENDLESS)
def test_every_stream_gets_its_last_event_when_the_server_stops(route, registry_of, running_server, caplog):
    """One stream is generating, and the others wait for a slot."""
    body = {"model": "small", "stream": True, "seed": 1, **ENDLESS[route]}
    started, streams = [], []

    def read():
        with server.client() as client, client.stream("POST", f"/v1/{route}", json=body) as response:
            started.append(response.status_code)
            streams.append([line for line in response.iter_lines() if line])

    with running_server(registry_of(slots=1, queue=4), grace=0.5) as server:
        readers = [threading.Thread(target=read) for _ in range(3)]
        for each in readers:
            each.start()
        server.until(lambda: len(started) == 3 and server.engine.running == 1)
        server.shut_down()
        for each in readers:
            each.join(60)
    assert started == [200] * 3
    assert len(streams) == 3
    for *_, event, last in streams:
        if route == "responses":
            assert event == "event: response.incomplete"
            response = json.loads(last.removeprefix("data: "))["response"]
            assert response["incomplete_details"] == {"reason": "max_output_tokens"}
        else:
            assert last == "data: [DONE]"
            assert json.loads(event.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
