"""Models from the hub, fetched from a local fake hub; failures give a one-line error."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clearhead.errors import UserError
from clearhead.formats.hub import fetch, is_name

COMMIT = "c" * 40
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "model.safetensors.index.json": b"{ }",
    "tokenizer.json": b"{  }",
    "chat_template.jinja": b"{{ messages }}",
    "consolidated.safetensors": b"the same weights",
    "onnx/model.safetensors": b"others",
    "pytorch_model.bin": b"a pickle",
    "modeling_evil.py": b"import os",
    "README.md": b"# Model",
}
FETCH = """
import os, sys
from clearhead.formats import hub
hub.SECONDS = float(os.environ.get("PATIENCE", hub.SECONDS))
print(hub.fetch(sys.argv[1]))
"""


@dataclass
class Hub:
    """A fake hub with one model, org/model."""

    files: dict = field(default_factory=lambda: dict(FILES))
    refuses: tuple | None = None  # the status and headers to send instead of an answer
    asked: list = field(default_factory=list)
    url: str = ""

    def answer(self, path):
        """Return the status, headers and body for a path."""
        if not path.startswith(("/api/models/org/", "/org/")):
            return 404, {}, b""
        if self.refuses:
            return *self.refuses, b""
        if "/resolve/" in path:
            body = self.files[path.partition(f"{COMMIT}/")[2]]
            return 200, {"ETag": f'"{body.hex():0<40.40}"', "X-Repo-Commit": COMMIT}, body
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": name, "size": len(body), "oid": f"{body.hex():0<40.40}"}
                for name, body in self.files.items()
            ]
            return 200, {}, json.dumps(rows).encode()
        names = [{"rfilename": name} for name in self.files]
        return 200, {}, json.dumps({"id": "org/model", "sha": COMMIT, "siblings": names}).encode()


@pytest.fixture
def hub():
    """The fake hub, listening."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            hub.asked.append(path)
            status, headers, body = hub.answer(path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    yield hub
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def fetched(forked, tmp_path):
    """Fetch a model in a separate process, because the hub's address is read on import."""

    def call(name, url, **surroundings):
        given = {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": url, "NO_PROXY": "127.0.0.1", **surroundings}
        return subprocess.run(
            [*forked, "-c", FETCH, name],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return call


@pytest.fixture
def refused(fetched):
    """Fetch a model that is unavailable, and return the one-line error."""

    def call(url, **surroundings):
        done = fetched("org/model", url, **surroundings)
        assert done.returncode == 1
        assert done.stdout == ""
        line = done.stderr.splitlines()[-1]
        assert line.startswith("clearhead.errors.UserError: ")
        assert "org/model" in line
        assert "clearhead pull smollm2" in line
        return line

    return call


def test_only_needed_files_are_fetched(hub, fetched):
    done = fetched("org/model", hub.url)
    assert (done.returncode, done.stderr) == (0, "")
    folder = Path(done.stdout.strip())
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")} == {
        name: FILES[name]
        for name in (
            "config.json",
            "model.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json",
            "chat_template.jinja",
        )
    }
    assert not any(path.endswith((".bin", ".py", ".md")) for path in hub.asked)


def test_only_gguf_file_is_fetched(hub, fetched):
    hub.files = {
        "model.Q4_0.gguf": b"GGUF",
        "part-00001-of-00002.gguf": b"",
        "README.md": b"",
        "a/b.gguf": b"",
    }
    done = fetched("org/model", hub.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).name == "model.Q4_0.gguf"
    assert Path(done.stdout.strip()).read_bytes() == b"GGUF"
    assert [path for path in hub.asked if path.endswith(".gguf")] == [
        f"/org/model/resolve/{COMMIT}/model.Q4_0.gguf"
    ] * 2


def test_one_of_several_gguf_files_is_named(hub, fetched, refused):
    hub.files = {"one.gguf": b"1", "two.gguf": b"2", "config.json": b"{}"}
    assert "has no .safetensors" in refused(hub.url)
    del hub.files["config.json"]
    assert "name one, such as org/model/one.gguf" in refused(hub.url)
    done = fetched("org/model/two.gguf", hub.url)
    assert Path(done.stdout.strip()).read_bytes() == b"2"
    assert fetched("org/model/two.gguf", "http://127.0.0.1:9").stdout == done.stdout
    missing = fetched("org/model/three.gguf", hub.url)
    assert "that model has the GGUF files one.gguf, two.gguf" in missing.stderr.splitlines()[-1]
    assert "could not be fetched" in fetched("org/model/one.gguf", "http://127.0.0.1:9").stderr
    hub.files = {"a-00001-of-00002.gguf": b"1", "a-00002-of-00002.gguf": b"2"}
    assert "in several parts are not supported" in refused(hub.url)


def test_adapters_and_older_tokenizers_are_fetched(hub, fetched):
    hub.files = {
        "adapter_config.json": b"{}",
        "adapter_model.safetensors": b"weights",
        "vocab.json": b"{ }",
        "merges.txt": b"a b",
        "adapter_model.bin": b"a pickle",
    }
    folder = Path(fetched("org/model", hub.url).stdout.strip())
    assert {path.name for path in folder.iterdir()} == hub.files.keys() - {"adapter_model.bin"}


def test_fetched_models_are_available_offline(hub, fetched):
    first = fetched("org/model", hub.url)
    asked = len(hub.asked)
    again = fetched("org/model", "http://127.0.0.1:9")
    offline = fetched("org/model", hub.url, HF_HUB_OFFLINE="1")
    assert first.stdout == again.stdout == offline.stdout != ""
    assert len(hub.asked) == asked


def test_connection_errors_are_reported(refused):
    assert "could not be fetched from the hub (ConnectError" in refused("http://127.0.0.1:9")


def test_unresponsive_hub_times_out(refused):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "ReadTimeout" in refused(address, PATIENCE="0.2")


def test_offline_mode_makes_no_requests(refused, hub):
    assert "offline mode is enabled" in refused(hub.url, HF_HUB_OFFLINE="1")
    assert hub.asked == []


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (404, {"X-Error-Code": "RepoNotFound"}, "the hub has no model org/model"),
        (401, {"X-Error-Code": "RepoNotFound"}, "or it is private"),
        (403, {"X-Error-Code": "GatedRepo"}, "requires accepting its license"),
        (500, {}, "500"),
        (200, {}, "could not be fetched"),  # not JSON, such as a captive portal's login page
    ],
)
def test_hub_error_responses_are_reported(hub, refused, status, headers, words):
    hub.refuses = (status, headers)
    assert words in refused(hub.url)
    assert len(hub.asked) < 8


@pytest.mark.parametrize(
    ("missing", "words"), [("config.json", "has no config.json"), ("model.safetensors", "never opened")]
)
def test_unreadable_model_is_not_downloaded(hub, refused, missing, words):
    del hub.files[missing], hub.files["consolidated.safetensors"]
    assert words in refused(hub.url)
    assert not any("/resolve/" in path for path in hub.asked)


@pytest.mark.parametrize(
    "name", ["org/model", "HuggingFaceTB/SmolLM2-135M", "a/b", "o_r-g/m.o_d-el_", "a/b/c.Q4_K_M.gguf"]
)
def test_valid_names_are_accepted(name):
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt2",
        "a/b/c",
        "a/b/c/d.gguf",
        "a/b/../c.gguf",
        "a/b/.gguf",
        "../etc",
        "a/..",
        "a/b..c",
        "/a/b",
        "a/",
        "/b",
        "a b/c",
        "a/b\n",
        "é/b",
        "a--b/c",
        "-a/b",
        "a/b.",
        "a/b.git",
        "https://huggingface.co/a",
        "a/" + "b" * 95,
    ],
)
def test_invalid_names_are_rejected(name):
    with pytest.raises(UserError, match="expected org/model"):
        fetch(name)


def test_hub_library_is_imported_lazily():
    code = "import sys, clearhead.formats.hub as hub; assert 'huggingface_hub' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
