import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from clearhead.errors import UserError
from clearhead.server.shelf import load_models

LONG = {"max_tokens": 4096, "seed": 1, "seconds": 2.5, "temperature": 1.0}


@contextmanager
def process(*arguments, port=0):
    """`clearhead serve` as a user runs it, and the address that it prints."""
    command = [sys.executable, "-m", "clearhead", "serve", *arguments, "--port", str(port), "--device", "cpu"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.wait(20)
        started.stderr.close()
        started.stdout.close()


def opening(started):
    """What it said until it told where to go, and that."""
    said = []
    for line in started.stderr:
        said.append(line)
        if line.startswith("open http"):
            return "".join(said), line.split()[1]
    raise AssertionError("".join(said))


def ask(address):
    url, _, token = address.partition("/?token=")
    return httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
    )


def no_end(model_folder):
    """Biases under which the text never ends by itself."""
    from clearhead.language_model import load

    return {str(i): -100 for i in load(model_folder, "cpu").tokenizer.end_ids}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_streams_is_finished_before_the_end(model_folder, number):
    prompt = "Verysecretprompt".lower()
    body = {"model": "small", "prompt": prompt, "stream": True, **LONG, "logit_bias": no_end(model_folder)}
    with process(str(model_folder)) as started:
        said, address = opening(started)
        token = address.partition("token=")[2]
        assert len(token) >= 32
        with ask(address) as client:
            with client.stream("POST", "/v1/completions", json=body) as answer:
                assert answer.status_code == 200
                lines = answer.iter_lines()
                first = [next(lines) for _ in range(3)]
                started.send_signal(number)
                rest = list(lines)
            assert first[0].startswith("data: {")
            assert len(rest) > 10
            told = [line for line in rest if line]
            assert told[-1] == "data: [DONE]"
            assert json.loads(told[-2].removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
            with pytest.raises(httpx.TransportError):
                client.get("/healthz")
        after = started.stderr.read()
        assert started.wait(20) == 0, after
    assert re.search(r"POST /v1/completions 200 \d+ ms \d+ read \d+ written", after)
    assert after.rstrip().endswith("ended")
    assert token not in after
    assert prompt not in said + after
    assert "Traceback" not in after


def test_the_log_tells_neither_tokens_nor_prompts(model_folder):
    with process(str(model_folder)) as started:
        _, address = opening(started)
        token = address.partition("token=")[2]
        assert httpx.get(address, trust_env=False).status_code == 303
        with ask(address) as client:
            client.get(f"/v1/models/secretname?token={token}")
            client.get("/v1/models/secretname?secretquery=1")
            client.get("/secretpath")
            client.request("SECRETMETHOD", "/")
            client.post("/v1/completions", json={"model": "small", "prompt": "secretprompt", "top_p": 5})
            client.post("/v1/completions", json={"model": "small", "prompt": "secretprompt"})
            client.post("/api/tokens", content=b"secretbody")
            client.get("/", headers={"Host": "secrethost"})
        started.terminate()
        after = started.stderr.read()
        assert started.wait(20) == 0
    assert len(re.findall(r"^(GET|POST|-) \S+ \d+ \d+ ms", after, re.MULTILINE)) == 9, after
    assert token not in after
    assert "secret" not in after.lower()


def test_a_model_that_fails_does_not_take_the_others_down(model_folder, tmp_path):
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "config.json").write_text("{")
    with process(str(bad), str(model_folder), str(tmp_path / "nowhere")) as started:
        said, address = opening(started)
        assert "bad could not be loaded" in said
        with ask(address) as client:
            assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["small"]
            body = {"model": "small", "prompt": "a", "max_tokens": 2}
            assert client.post("/v1/completions", json=body).status_code == 200
            refused = client.post("/v1/completions", json={**body, "model": "bad"})
            assert refused.status_code == 503
            assert str(tmp_path) not in refused.text


def test_a_killed_server_leaves_its_port_free(model_folder):
    with process(str(model_folder)) as started:
        _, address = opening(started)
        with ask(address) as client:
            assert client.get("/healthz").text == "ok\n"
        started.send_signal(signal.SIGKILL)
        started.wait(20)
    port = httpx.URL(address).port
    with process(str(model_folder), port=port) as again:
        _, other = opening(again)
        assert httpx.URL(other).port == port
        with ask(other) as client:
            assert client.get("/healthz").text == "ok\n"


def test_what_is_not_safe_is_not_served(model_folder):
    with process(str(model_folder), "--host", "0.0.0.0", "--no-token") as started:
        said = started.stderr.read()
        assert started.wait(60) not in (0, None)
    assert "token only" in " ".join(said.split())
    assert "Traceback" not in said


def test_nothing_is_served_where_nothing_loads(tmp_path):
    with pytest.raises(UserError, match="none of the models"):
        load_models([str(tmp_path / "nowhere")], "cpu")


def test_names_are_made_of_the_last_part(model_folder):
    shelf = load_models([str(model_folder), f"{model_folder}/"], "cpu", slots=1)
    try:
        assert list(shelf.served) == ["small", "small-2"]
    finally:
        shelf.close(cancel=True)


def test_nothing_waits_for_a_client_that_is_gone(model_folder):
    """A client that vanishes without a word, and the server ends at once."""
    with process(str(model_folder)) as started:
        _, address = opening(started)
        body = {"model": "small", "prompt": "a", "stream": True, **LONG, "seconds": 60}
        body["logit_bias"] = no_end(model_folder)
        with ask(address) as client, client.stream("POST", "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
        begun = time.monotonic()
        started.terminate()
        assert started.wait(20) == 0
        assert time.monotonic() - begun < 10
