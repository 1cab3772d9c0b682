"""Models on disk that are opened while the server runs."""

import json
import shutil
import threading
import weakref
from typing import ClassVar

import pytest

from clearhead.errors import UserError
from clearhead.formats.builtin import BUILTIN
from clearhead.language_model import load
from clearhead.server.model_loader import BYTES_PER_PARAMETER, ModelLibrary, strip_folders
from clearhead.server.model_registry import LoadOptions, ModelRegistry, ServedModel, load_models

TEXT = "Once upon a time"


@pytest.fixture
def runs(model_folder, tmp_path):
    """A folder with three models, created one after another."""
    place = tmp_path / "secret-place" / "runs"
    for name in ("first", "second", "third"):
        shutil.copytree(model_folder, place / name)
    return place


@pytest.fixture
def start_library(runs, running_server, tmp_path):
    """Start a server with a library of these models, one of which is loaded."""
    registry = load_models([runs / "first"], LoadOptions("cpu", slots=2))

    def serve(memory=None):
        return running_server(
            registry, library=ModelLibrary([runs], tmp_path / "home", LoadOptions("cpu", slots=2), memory)
        )

    yield serve
    registry.close(cancel=True)


def size(runs):
    return BYTES_PER_PARAMETER * load(runs / "first", "cpu").config.n_parameter


def states(client):
    return {each["name"]: each["state"] for each in client.get("/api/models").json()["models"]}


def ask(client, name, route="trace", **more):
    return client.post(f"/api/{route}", json={"model": name, "text": TEXT, **more})


def open_model(client, name):
    return client.post("/api/open", json={"model": name})


def test_models_on_disk_are_listed_and_opened(start_library, runs):
    with start_library() as server, server.client() as client:
        assert states(client) == {"first": "loaded", "second": "not loaded", "third": "not loaded"}
        listed = client.get("/api/models").json()["models"]
        assert {each["origin"] for each in listed} == {"run"}
        assert len({json.dumps(each["config"]) for each in listed}) == 1
        assert all(each["bytes"] > 1000 and each["parameters"] > 1000 for each in listed)
        rejected = ask(client, "second")
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (503, "model_not_open")
        opened = open_model(client, "second")
        assert (opened.status_code, opened.json()["state"]) == (200, "loaded")
        assert opened.json()["tokenizer"] == "char"
        assert ask(client, "second").json()["ids"] == ask(client, "first").json()["ids"]
        written = client.post("/v1/completions", json={"model": "second", "prompt": "a", "max_tokens": 2})
        assert written.status_code == 200
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["first", "second"]
        assert 'clearhead_running{model="second"} 0.0' in client.get("/metrics").text
        assert "secret-place" not in client.get("/api/models").text


def test_built_in_model_is_listed_last_and_has_snapshots(runs, running_server, tmp_path):
    library = ModelLibrary([runs, BUILTIN], tmp_path / "home", LoadOptions("cpu", slots=2))
    with running_server(ModelRegistry([]), library=library) as server, server.client() as client:
        *_, listed = client.get("/api/models").json()["models"]
        assert (listed["name"], listed["origin"], listed["state"]) == ("stories", "built-in", "not loaded")
        assert open_model(client, "stories").json()["origin"] == "built-in"
        [run] = (each for each in client.get("/api/runs").json()["runs"] if each["name"] == "stories")
        assert (run["model"], run["state"], run["resumable"]) == ("stories", "finished", False)
        assert client.get("/api/runs/stories/metrics").json()["steps"]
        assert open_model(client, f"stories@{run['snapshots'][0]}").json()["state"] == "loaded"
        assert str(BUILTIN) not in client.get("/api/models").text


def test_model_list_follows_the_disk(start_library, runs):
    with start_library() as server, server.client() as client:
        states(client)
        shutil.copytree(runs / "third", runs / "fourth")
        shutil.rmtree(runs / "second")
        shutil.rmtree(runs / "first")  # stays loaded and available
        assert states(client) == {"first": "loaded", "third": "not loaded", "fourth": "not loaded"}
        assert open_model(client, "fourth").status_code == 200
        assert ask(client, "first").status_code == 200


def test_only_listed_names_can_be_opened(start_library, runs):
    with start_library() as server, server.client() as client:
        states(client)
        for name in ("nothing", "../runs/second", "runs/second", "second/", "/etc", "smollm2", "second\x00"):
            response = open_model(client, name)
            assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found"), name
        response = open_model(client, str(runs / "second"))
        assert response.status_code == 404


def test_without_a_library_only_the_registry_is_served(client, home, copied_model):
    assert states(client) == {"small": "loaded", "broken": "failed"}
    assert open_model(client, "small").json()["state"] == "loaded"
    assert open_model(client, "model").status_code == 404
    assert open_model(client, "broken").status_code == 503
    assert client.get("/api/models").json()["can_be_pulled"] == []
    rejected = client.post("/api/pull", json={"name": "smollm2"})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (404, "cannot_be_pulled")


def test_load_errors_contain_no_path(start_library, runs):
    weights = runs / "second" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-5])
    with start_library() as server, server.client() as client:
        states(client)
        response = open_model(client, "second")
        assert response.status_code == 503
        assert "could not be loaded: second/model.safetensors" in response.json()["error"]["message"]
        listed = client.get("/api/models")
        assert states(client)["second"] == "failed"
        assert "secret-place" not in response.text + listed.text
        assert any("secret-place" in line for line in server.log)
        assert ask(client, "first").status_code == 200
        # Once repaired, it can be opened.
        weights.write_bytes(whole)
        assert open_model(client, "second").status_code == 200


def test_least_recently_used_model_is_unloaded(start_library, runs):
    with start_library(memory=4 * size(runs)) as server, server.client() as client:
        states(client)
        assert ask(client, "first").status_code == 200
        first = weakref.ref(server.registry.model("first"))
        assert open_model(client, "second").status_code == 200
        assert ask(client, "second").status_code == 200
        assert open_model(client, "third").status_code == 200
        assert states(client) == {"first": "not loaded", "second": "loaded", "third": "loaded"}
        assert first() is None
        assert ask(client, "first").status_code == 503
        assert open_model(client, "first").status_code == 200  # loaded again
        assert states(client)["second"] == "not loaded"
        assert ask(client, "first").status_code == 200


def test_models_in_use_are_not_unloaded(start_library, runs):
    with start_library(memory=3 * size(runs)) as server, server.client() as client:
        states(client)
        assert ask(client, "first").status_code == 200  # loads it
        model = server.registry.model("first")
        bias = dict.fromkeys(model.tokenizer.end_ids, -100)
        handle = server.registry.engine("first").submit(model.request("a", 10**6, logit_bias=bias))
        rejected = open_model(client, "second")
        assert rejected.status_code == 429
        assert "all loaded models are in use" in rejected.json()["error"]["message"]
        assert states(client) == {"first": "loaded", "second": "not loaded", "third": "not loaded"}
        handle.cancel()
        server.until(lambda: not server.registry.served["first"].generating)
        assert open_model(client, "second").status_code == 200
        assert states(client)["first"] == "not loaded"


def test_models_larger_than_memory_are_not_loaded(start_library, runs):
    with start_library(memory=size(runs) - 1) as server, server.client() as client:
        states(client)
        assert "GB of memory" in open_model(client, "second").json()["error"]["message"]
        assert states(client)["first"] == "loaded"


class Slow(LoadOptions):
    """Blocks loading until `waiting` is set, and records the names of loaded models."""

    waiting = threading.Event()
    loaded: ClassVar = []

    def load(self, name, source):
        assert self.waiting.wait(120)
        self.loaded.append(name)
        return super().load(name, source)


def test_models_load_once_without_blocking_other_requests(runs, running_server, tmp_path):
    Slow.waiting.clear()
    Slow.loaded.clear()
    registry = load_models([runs / "first"], LoadOptions("cpu", slots=2))
    responses = []
    with (
        running_server(registry, library=ModelLibrary([runs], tmp_path, Slow("cpu"))) as server,
        server.client() as client,
    ):
        states(client)

        def open_later(name):
            with server.client() as other:
                responses.append(open_model(other, name).status_code)

        shutil.copytree(runs / "third", runs / "fourth")
        states(client)
        threads = [
            threading.Thread(target=open_later, args=(name,)) for name in ("second", "second", "third")
        ]
        for thread in threads:
            thread.start()
        server.until(lambda: list(states(client).values()) == ["loaded", "loading", "loading", "not loaded"])
        assert ask(client, "first").status_code == 200
        # A load whose clients have disconnected is not started.
        server.abandon("/api/open", {"model": "fourth"}, once=lambda: states(client)["fourth"] == "loading")
        Slow.waiting.set()
        for thread in threads:
            thread.join(60)
        assert responses == [200, 200, 200]
        assert sorted(Slow.loaded) == ["second", "third"]
        server.until(lambda: states(client)["fourth"] == "not loaded")
    registry.close(cancel=True)


def test_registry_can_change_during_iteration():
    registry = ModelRegistry([ServedModel("one"), ServedModel("two")])
    for each in registry:
        registry.add(ServedModel(f"after {each.name}"))
    assert [each.name for each in registry] == ["one", "two", "after one", "after two"]


def test_registry_can_start_empty(runs, running_server, tmp_path):
    registry = ModelRegistry([])
    with (
        running_server(registry, library=ModelLibrary([runs], tmp_path, LoadOptions("cpu"))) as server,
        server.client() as client,
    ):
        assert set(states(client).values()) == {"not loaded"}
        assert open_model(client, "third").status_code == 200
        assert ask(client, "third").status_code == 200
    registry.close(cancel=True)


def test_strip_folders_removes_folders_from_messages(tmp_path):
    path = tmp_path / "my runs" / "one"
    assert strip_folders(f"{path}/config.json is not valid JSON", path) == "one/config.json is not valid JSON"
    assert str(tmp_path) not in strip_folders(f"no space left in {tmp_path}: free some space", path)
    assert strip_folders("runs/one has no weights", path.relative_to(tmp_path)) == "runs/one has no weights"


def test_only_first_loads_the_first_valid_model(model_folder, tmp_path):
    log = []
    registry = load_models(
        [tmp_path / "no", model_folder, model_folder], LoadOptions("cpu"), log.append, True
    )
    try:
        assert list(registry.served) == ["small"]
        assert "no could not be loaded" in log[0]
        assert list(load_models([tmp_path / "no"], LoadOptions("cpu"), only_first=True)) == []
        with pytest.raises(UserError):
            load_models([tmp_path / "no"], LoadOptions("cpu"))
    finally:
        registry.close(cancel=True)


def test_damaged_models_are_listed_once(runs, running_server, tmp_path):
    (runs / "second" / "model.safetensors").write_bytes(b"nothing")
    registry = load_models([runs / "first", runs / "second"], LoadOptions("cpu", slots=1))
    try:
        library = ModelLibrary([runs], tmp_path / "home", LoadOptions("cpu", slots=1))
        with running_server(registry, library=library) as server, server.client() as client:
            assert states(client) == {"first": "loaded", "second": "failed", "third": "not loaded"}
    finally:
        registry.close(cancel=True)
