"""Models on the disk, opened while the server runs."""

import json
import shutil
import threading
import weakref
from typing import ClassVar

import pytest

from clearhead.errors import UserError
from clearhead.language_model import load
from clearhead.server.model_loader import BYTES, ModelLibrary, strip_folders
from clearhead.server.model_registry import LoadOptions, ModelRegistry, ServedModel, load_models

TEXT = "Once upon a time"


@pytest.fixture
def runs(model_folder, tmp_path):
    """Three models in a folder, one after the other."""
    place = tmp_path / "secret-place" / "runs"
    for name in ("first", "second", "third"):
        shutil.copytree(model_folder, place / name)
    return place


@pytest.fixture
def offering(runs, running_server, tmp_path):
    """A server that offers these models, and has loaded one of them; with so much memory."""
    registry = load_models([runs / "first"], LoadOptions("cpu", slots=2))

    def serve(memory=None):
        return running_server(
            registry, library=ModelLibrary([runs], tmp_path / "home", LoadOptions("cpu", slots=2), memory)
        )

    yield serve
    registry.close(cancel=True)


def size(runs):
    return BYTES * load(runs / "first", "cpu").config.n_parameter


def states(client):
    return {each["name"]: each["state"] for each in client.get("/api/models").json()["models"]}


def ask(client, name, route="trace", **more):
    return client.post(f"/api/{route}", json={"model": name, "text": TEXT, **more})


def open_model(client, name):
    return client.post("/api/open", json={"model": name})


def test_what_is_on_the_disk_is_listed_and_loaded_when_chosen(offering, runs):
    with offering() as server, server.client() as client:
        assert states(client) == {"first": "loaded", "second": "not loaded", "third": "not loaded"}
        listed = client.get("/api/models").json()["models"]
        assert {each["origin"] for each in listed} == {"run"}
        assert len({json.dumps(each["config"]) for each in listed}) == 1
        assert all(each["bytes"] > 1000 and each["parameters"] > 1000 for each in listed)
        refused = ask(client, "second")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "model_not_open")
        opened = open_model(client, "second")
        assert (opened.status_code, opened.json()["state"]) == (200, "loaded")
        assert opened.json()["tokenizer"] == "char"
        assert ask(client, "second").json()["ids"] == ask(client, "first").json()["ids"]
        written = client.post("/v1/completions", json={"model": "second", "prompt": "a", "max_tokens": 2})
        assert written.status_code == 200
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["first", "second"]
        assert 'clearhead_running{model="second"} 0.0' in client.get("/metrics").text
        assert "secret-place" not in client.get("/api/models").text


def test_what_comes_later_is_listed_and_what_goes_is_not(offering, runs):
    with offering() as server, server.client() as client:
        states(client)
        shutil.copytree(runs / "third", runs / "fourth")
        shutil.rmtree(runs / "second")
        shutil.rmtree(runs / "first")  # it is loaded, and goes on being served
        assert states(client) == {"first": "loaded", "third": "not loaded", "fourth": "not loaded"}
        assert open_model(client, "fourth").status_code == 200
        assert ask(client, "first").status_code == 200


@pytest.mark.parametrize(
    "name", ["nothing", "../runs/second", "runs/second", "second/", "/etc", "smollm2", "second\x00"]
)
def test_only_names_of_the_list_are_opened(offering, runs, name):
    with offering() as server, server.client() as client:
        states(client)
        answer = open_model(client, name)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
        answer = open_model(client, str(runs / "second"))
        assert answer.status_code == 404


def test_without_an_offer_nothing_else_is_there(client, home, copied_model):
    assert states(client) == {"small": "loaded", "broken": "failed"}
    assert open_model(client, "small").json()["state"] == "loaded"
    assert open_model(client, "model").status_code == 404
    assert open_model(client, "broken").status_code == 503
    assert client.get("/api/models").json()["can_be_pulled"] == []
    refused = client.post("/api/pull", json={"name": "smollm2"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "cannot_be_pulled")


def test_one_that_cannot_be_loaded_says_why_without_where(offering, runs):
    weights = runs / "second" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-5])
    with offering() as server, server.client() as client:
        states(client)
        answer = open_model(client, "second")
        assert answer.status_code == 503
        assert "could not be loaded: second/model.safetensors" in answer.json()["error"]["message"]
        listed = client.get("/api/models")
        assert states(client)["second"] == "failed"
        assert "secret-place" not in answer.text + listed.text
        assert any("secret-place" in line for line in server.log)
        assert ask(client, "first").status_code == 200
        # Once it is mended, it can be tried again.
        weights.write_bytes(whole)
        assert open_model(client, "second").status_code == 200


def test_the_least_recently_used_is_closed_and_leaves_the_memory(offering, runs):
    with offering(memory=4 * size(runs)) as server, server.client() as client:
        states(client)
        assert ask(client, "first").status_code == 200
        first = weakref.ref(server.registry.model("first"))
        assert open_model(client, "second").status_code == 200
        assert ask(client, "second").status_code == 200
        assert open_model(client, "third").status_code == 200
        assert states(client) == {"first": "not loaded", "second": "loaded", "third": "loaded"}
        assert first() is None
        assert ask(client, "first").status_code == 503
        assert open_model(client, "first").status_code == 200  # and back again
        assert states(client)["second"] == "not loaded"
        assert ask(client, "first").status_code == 200


def test_who_is_at_work_is_not_closed(offering, runs):
    with offering(memory=3 * size(runs)) as server, server.client() as client:
        states(client)
        body = {"model": "first", "prompt": "a", "max_tokens": 4096, "stream": True, "seconds": 60}
        bias = {str(i): -100 for i in server.registry.model("first").tokenizer.end_ids}
        with client.stream("POST", "/v1/completions", json={**body, "logit_bias": bias}) as stream:
            lines = stream.iter_lines()
            assert "error" not in next(lines)
            with server.client() as other:
                refused = open_model(other, "second")
                assert refused.status_code == 429
                assert "all at work" in refused.json()["error"]["message"]
                assert states(other) == {"first": "loaded", "second": "not loaded", "third": "not loaded"}
        server.until(lambda: not server.registry.served["first"].writes)
        assert open_model(client, "second").status_code == 200
        assert states(client)["first"] == "not loaded"


def test_one_that_is_too_large_is_refused_before_it_is_loaded(offering, runs):
    with offering(memory=size(runs) - 1) as server, server.client() as client:
        states(client)
        assert "GB of memory" in open_model(client, "second").json()["error"]["message"]
        assert states(client)["first"] == "loaded"


class Slow(LoadOptions):
    """Takes its time, and counts."""

    waiting = threading.Event()
    loaded: ClassVar = []

    def load(self, name, source):
        assert self.waiting.wait(120)
        self.loaded.append(name)
        return super().load(name, source)


def test_others_are_served_while_one_is_loaded_and_it_is_loaded_once(runs, running_server, tmp_path):
    Slow.waiting.clear()
    Slow.loaded.clear()
    registry = load_models([runs / "first"], LoadOptions("cpu", slots=2))
    answers = []
    with (
        running_server(registry, library=ModelLibrary([runs], tmp_path, Slow("cpu"))) as server,
        server.client() as client,
    ):
        states(client)

        def opening(name):
            with server.client() as other:
                answers.append(open_model(other, name).status_code)

        shutil.copytree(runs / "third", runs / "fourth")
        states(client)
        threads = [threading.Thread(target=opening, args=(name,)) for name in ("second", "second", "third")]
        for thread in threads:
            thread.start()
        server.until(lambda: list(states(client).values()) == ["loaded", "loading", "loading", "not loaded"])
        assert ask(client, "first").status_code == 200
        # One who leaves before its turn has come is not worked for.
        server.abandon("/api/open", {"model": "fourth"}, once=lambda: states(client)["fourth"] == "loading")
        Slow.waiting.set()
        for thread in threads:
            thread.join(60)
        assert answers == [200, 200, 200]
        assert sorted(Slow.loaded) == ["second", "third"]
        server.until(lambda: states(client)["fourth"] == "not loaded")
    registry.close(cancel=True)


def test_a_shelf_is_gone_through_while_another_model_is_put_there():
    registry = ModelRegistry([ServedModel("one"), ServedModel("two")])
    for each in registry:
        registry.put(ServedModel(f"after {each.name}"))
    assert [each.name for each in registry] == ["one", "two", "after one", "after two"]


def test_an_empty_shelf_can_be_filled(runs, running_server, tmp_path):
    registry = ModelRegistry([])
    with (
        running_server(registry, library=ModelLibrary([runs], tmp_path, LoadOptions("cpu"))) as server,
        server.client() as client,
    ):
        assert set(states(client).values()) == {"not loaded"}
        assert open_model(client, "third").status_code == 200
        assert ask(client, "third").status_code == 200
    registry.close(cancel=True)


def test_folders_are_left_out_of_what_is_said(tmp_path):
    path = tmp_path / "my runs" / "one"
    assert strip_folders(f"{path}/config.json is not JSON", path) == "one/config.json is not JSON"
    assert str(tmp_path) not in strip_folders(f"no space left in {tmp_path}: free some", path)
    assert strip_folders("runs/one has no weights", path.relative_to(tmp_path)) == "runs/one has no weights"


def test_only_the_first_that_loads(model_folder, tmp_path):
    said = []
    registry = load_models(
        [tmp_path / "no", model_folder, model_folder], LoadOptions("cpu"), said.append, True
    )
    try:
        assert list(registry.served) == ["small"]
        assert "no could not be loaded" in said[0]
        assert list(load_models([tmp_path / "no"], LoadOptions("cpu"), only_first=True)) == []
        with pytest.raises(UserError):
            load_models([tmp_path / "no"], LoadOptions("cpu"))
    finally:
        registry.close(cancel=True)


def test_what_was_given_and_is_damaged_is_listed_once(runs, running_server, tmp_path):
    (runs / "second" / "model.safetensors").write_bytes(b"nothing")
    registry = load_models([runs / "first", runs / "second"], LoadOptions("cpu", slots=1))
    try:
        library = ModelLibrary([runs], tmp_path / "home", LoadOptions("cpu", slots=1))
        with running_server(registry, library=library) as server, server.client() as client:
            assert states(client) == {"first": "loaded", "second": "failed", "third": "not loaded"}
    finally:
        registry.close(cancel=True)
