"""A small chat model and a real server for it, used by the server and page tests."""

import dataclasses
import hashlib
import json
import shutil
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection

import httpx
import torch

from clearhead.export.page_file import write_page
from clearhead.files import seal
from clearhead.formats.pulled import CATALOG
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.server.authentication import Credentials
from clearhead.server.model_registry import ModelRegistry, ServedModel
from clearhead.server.process import make_credentials, make_server, open_socket
from clearhead.text.tokenizer import Tokenizer
from tests import event_loop

TOKEN = "a-token-for-the-tests-0123456789"
TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def make_model(kind="modern", template=TEMPLATE, **sizes):
    made = Tokenizer.train("byte", [])
    tokenizer = Tokenizer(made._inner, {**made.config, "chat_template": template})
    usual = {"n_context": 128, "n_block": 1, "n_head": 2, "d_model": 16}
    torch.manual_seed(0)
    network = Transformer(preset(kind, n_vocab=tokenizer.n_vocab, **{**usual, **sizes}))
    for parameter in network.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer)


@dataclass
class Running:
    """A running server."""

    credentials: Credentials
    registry: ModelRegistry
    log: list[str] = field(default_factory=list)
    shut_down: Callable[[], object] = lambda: None  # as on SIGTERM

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.credentials.port}"

    @property
    def engine(self):
        return self.registry.engine("small")

    @property
    def model(self):
        return self.registry.model("small")

    @property
    def app(self):
        """The application, for enumerating its routes."""
        from clearhead.server.app import make_api
        from clearhead.server.metrics import ServerMetrics

        return make_api(self.registry, ServerMetrics(self.registry))

    def client(self, **settings) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.credentials.token}", **settings.pop("headers", {})}
        # With `verify`, every client would load the system's certificates.
        usual = {"timeout": 60, "trust_env": False, "verify": False}
        return httpx.Client(base_url=self.url, headers=headers, **usual, **settings)

    def until(self, holds, seconds=60.0):
        """Wait for a condition. The timeout only ends tests that hang, since a busy machine may be slow."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "the condition never held"
            time.sleep(0.005)

    def abandon(self, path, body, once):
        """Post a request, and close the connection once a condition holds, without reading the response."""
        connection = HTTPConnection("127.0.0.1", self.credentials.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.credentials.token}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        self.until(once)
        connection.close()

    def is_idle(self):
        return self.engine.running == 0 and self.engine.waiting == 0


def make_registry(slots=8, queue=64, **models):
    models = models or {"small": make_model()}
    served = [ServedModel(name, model, model.engine(slots, queue)) for name, model in models.items()]
    return ModelRegistry([*served, ServedModel("broken", error="could not be loaded from /secret/folder")])


@contextmanager
def running(registry, limits=None, token=TOKEN, port=0, library=None, grace=30.0):
    """Run a server in a thread, on a free port by default."""
    opened = open_socket("127.0.0.1", port, token)
    credentials = make_credentials("127.0.0.1", opened, token)
    made = Running(credentials, registry)
    server = make_server(registry, credentials, limits, made.log.append, library, grace, write_page)
    made.shut_down = partial(setattr, server, "should_exit", True)
    thread = threading.Thread(target=event_loop.run, args=[server.serve([opened])])
    thread.start()
    try:
        made.until(lambda: server.started or not thread.is_alive())
        yield made
    finally:
        server.should_exit = True
        thread.join(60)
        opened.close()


def make_pullable(folder, monkeypatch):
    """Build a wheel with a small GGUF file, add it to the catalog as `tiny`, and let pip find it."""
    index, scratch = folder / "index", folder / "scratch"
    index.mkdir()
    scratch.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    make_model().export(folder / "tiny.gguf")
    content = (folder / "tiny.gguf").read_bytes()
    made = index / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as package:
        package.writestr("tiny_model/tiny.gguf", content)
        info = "tiny_model-1.0.dist-info"
        package.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        package.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        package.writestr(f"{info}/RECORD", "")
    tiny = dataclasses.replace(
        CATALOG["smollm2"],
        name="tiny",
        title="Tiny",
        package="tiny-model",
        version="1.0",
        package_size=made.stat().st_size,
        package_sha256=hashlib.sha256(made.read_bytes()).hexdigest(),
        member="tiny_model/tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    monkeypatch.setitem(CATALOG, "tiny", tiny)
    return made


def make_finished(folder, model_folder, steps=3, **more):
    """Write the folder of a finished run without training."""
    shutil.copytree(model_folder, folder)
    shutil.copytree(model_folder, folder / "snapshots" / "step-000000001")
    settings = {
        "format": 1,
        "finished": True,
        "request": {"minutes": None, "preset": "modern"},
        "plan": {"recipe": {"steps": steps}, "config": load(model_folder, "cpu").config.to_json()},
        "text_sha256": "0" * 64,
        "validation_tokens": 100,
        "command": ["clearhead", "train", "my.txt"],
    }
    (folder / "run.json").write_text(json.dumps(seal(settings)))
    lines = [
        {"step": i, "loss": 1 / i, "learning_rate": 1.0, "tokens": 10 * i, **more}
        for i in range(1, steps + 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
