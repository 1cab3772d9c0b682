"""The server as a process. A start takes seconds, so each of them is asked about as much as it can tell."""

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

LONG = {"max_tokens": 4096, "seed": 1, "stream": True}
# Goes on until it is stopped, which it is after some of the processor's time.
SLOW_TEMPLATE = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


class Process:
    """`clearhead serve` as a user runs it, with folders of its own to leave things in."""

    def __init__(self, place, *arguments, port=0):
        self.places = [place / name for name in ("temporary", "person", "work")]
        for each in self.places:
            each.mkdir(parents=True, exist_ok=True)
        self.log = place / f"said-{time.monotonic_ns()}"
        temporary, person, work = self.places
        command = [sys.executable, "-m", "clearhead", "serve", *map(str, arguments), "--device", "cpu"]
        with self.log.open("wb") as said:
            self.popen = subprocess.Popen(
                [*command, "--port", str(port)],
                stdout=said,
                stderr=said,
                cwd=work,
                env={**os.environ, "TMPDIR": str(temporary), "HOME": str(person)},
                start_new_session=True,
            )

    @property
    def said(self):
        return self.log.read_text()

    def open(self):
        """The address that it prints, once it is there."""
        wait_for(lambda: re.search(r"^open http", self.said, re.MULTILINE) or self.popen.poll() is not None)
        found = re.search(r"^open (http\S+)", self.said, re.MULTILINE)
        assert found, self.said
        self.address = found[1]
        self.token = self.address.partition("token=")[2]
        return self

    def client(self):
        headers = {"Authorization": f"Bearer {self.token}"}
        url = self.address.partition("/?")[0]
        return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60)

    def descendants(self):
        """Those that live, of all processes that it or its children ever started."""
        return [pid for pid, session, state in _processes() if session == self.popen.pid and state != "Z"]

    def left_behind(self):
        return [path for place in self.places for path in place.rglob("*")]


def _processes():
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        yield int(path.parent.name), int(fields[3]), fields[0]


def wait_for(holds, seconds=60):
    until = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < until, "it never came"
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
    """Lines of a stream that has begun."""
    with client.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        for _ in range(3):
            next(lines)
        yield lines


def without_end(folder, prompt="a", seconds=60):
    """A text that never ends by itself."""
    bias = {str(i): -100 for i in load(folder, "cpu").tokenizer.end_ids}
    return {
        "model": folder.name,
        "prompt": prompt,
        "logit_bias": bias,
        "seconds": seconds,
        **LONG,
    }


def end(started, client, body, number):
    """Signal the server while it streams: the text must come to its end, and then the server."""
    with streaming(client, body) as lines:
        started.popen.send_signal(number)
        rest = [line for line in lines if line]
    assert len(rest) > 10
    assert rest[-1] == "data: [DONE]"
    assert json.loads(rest[-2].removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    with pytest.raises(httpx.TransportError):
        client.get("/healthz")
    assert started.popen.wait(60) == 0, started.said
    assert started.said.rstrip().endswith("ended")
    assert "Traceback" not in started.said


def test_from_start_to_end(model_folder, tmp_path):
    """Of three models two cannot be loaded; clients err, vanish and stream; then SIGTERM."""
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "config.json").write_text("{")
    body = {"model": "small", "prompt": "secretprompt", "max_tokens": 2}
    with process(tmp_path / "place", bad, model_folder, tmp_path / "nowhere") as started:
        started.open()
        assert "bad could not be loaded" in started.said
        assert len(started.token) >= 32
        assert httpx.get(started.address, trust_env=False).status_code == 303
        with started.client() as client:
            # What fails does not take the others down.
            assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["small"]
            assert client.post("/v1/completions", json=body).status_code == 200
            refused = client.post("/v1/completions", json={**body, "model": "bad"})
            assert refused.status_code == 503
            assert str(tmp_path) not in refused.text
            # All of these are told of in the log, and nothing of what is in them.
            client.get(f"/v1/models/secretname?token={started.token}")
            client.get("/v1/models/secretname?secretquery=1")
            client.get("/secretpath")
            client.request("SECRETMETHOD", "/")
            client.post("/v1/completions", json={**body, "top_p": 5})
            client.post("/api/tokens", content=b"secretbody")
            client.get("/", headers={"Host": "secrethost"})
            # Nothing waits for the text of a client that vanished.
            with started.client() as other, streaming(other, without_end(model_folder)):
                pass
            end(started, client, without_end(model_folder, "secretprompt", seconds=2), signal.SIGTERM)
        log = started.said.partition(started.address)[2]
        assert not started.left_behind()
    moment = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d "
    assert len(re.findall(moment + r"(?:GET|POST|-) \S+ \d+ \d+ ms", log, re.MULTILINE)) == 13, log
    assert re.search(r"POST /v1/completions 200 \d+ ms \S+ \d+ read \d+ written", log)
    assert started.token not in log
    assert "secret" not in started.said.lower()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_killed_and_started_again(copied_model, tmp_path):
    """SIGKILL while a text streams and a template is filled in; the next takes its place until SIGINT."""
    settings = copied_model / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": SLOW_TEMPLATE}))
    before = {path: path.read_bytes() for path in copied_model.rglob("*")}
    body, place = without_end(copied_model), tmp_path / "place"

    with process(place, copied_model) as started, started.open().client() as client:

        def chat():
            asked = {"model": copied_model.name, "messages": [{"role": "user", "content": "a"}]}
            with started.client() as other, suppress(httpx.TransportError):
                while True:  # each is ended after a while
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


def test_nothing_is_served_where_nothing_loads(tmp_path):
    with pytest.raises(UserError, match="none of the models"):
        load_models([str(tmp_path / "nowhere")], LoadOptions("cpu"))


def test_names_are_made_of_the_last_part(model_folder):
    registry = load_models([str(model_folder), f"{model_folder}/"], LoadOptions("cpu", slots=1))
    try:
        assert list(registry.served) == ["small", "small-2"]
    finally:
        registry.close(cancel=True)


def test_what_outlasts_the_grace_ends_where_it_stands_and_is_told(registry_of, running_server, caplog):
    forever = {"model": "small", "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}, "seed": 1}
    plain = []
    with running_server(registry_of(), grace=0.5) as server, server.client() as client:
        asking = threading.Thread(target=lambda: plain.append(client.post("/v1/completions", json=forever)))
        asking.start()
        with client.stream("POST", "/v1/completions", json={**forever, "stream": True}) as stream:
            lines = stream.iter_lines()
            next(lines)
            server.until(lambda: server.engine.running == 2)
            server.leave()
            rest = [line for line in lines if line]
        asking.join(60)
    *_, last, done = rest
    assert done == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    answer = plain[0]
    assert answer.status_code == 200
    assert 0 < answer.json()["usage"]["completion_tokens"] < 4096
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
