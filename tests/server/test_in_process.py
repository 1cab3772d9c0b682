"""The in-process client returns the same bytes as the server."""

import asyncio
import json
import threading

import pytest

from clearhead.server.in_process import InProcessClient, run_in_background
from tests.serving import make_model, make_registry, running

TEXT = "a duck"


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def local(model):
    return InProcessClient({"small": (model, ())})


def test_responses_match_the_server(model, local):
    body = {"model": "small", "text": TEXT}
    requests = {
        "/api/trace": {**body, "count": 5},
        "/api/sites": {
            **body,
            "reads": [{"site": "block.0.head.1.weights"}, {"weight": "block.0.head.0.W_Q"}],
        },
        "/api/patterns": {**body, "cells": 3},
        "/api/streams": body,
        "/api/tokens": body,
        "/api/site": {**body, "site": "block.7.input"},  # no such block
        "/api/pull": {"name": "smollm2"},
        "/api/open": {"model": "elsewhere"},
    }
    registry = make_registry(small=model)
    with running(registry) as server, server.client() as client:
        for path, body in requests.items():
            remote, own = client.post(path, json=body), local.request("POST", path, json.dumps(body))
            assert (own.status, own.body) == (remote.status_code, remote.content), path
            assert own.headers.get("x-shape") == remote.headers.get("x-shape")
            assert own.headers["content-type"] == remote.headers["content-type"]
    registry.close(cancel=True)
    [listed] = json.loads(local.request("GET", "/api/models").body)["models"]
    assert (listed["name"], listed["state"]) == ("small", "loaded")


def test_requests_reuse_traces_made_in_python(model):
    trace = model.inspect(TEXT, edit={"block.0.hidden": lambda x: 3 * x})
    local = InProcessClient({"small": (model, (trace,))})

    def logits(text, **more):
        body = {"model": "small", "text": text, "count": 3, "sites": False, **more}
        return [
            token["logit"]
            for token in json.loads(local.request("POST", "/api/trace", json.dumps(body)).body)["next"]
        ]

    assert logits(TEXT) == pytest.approx(trace.logits[-1].topk(3).values.tolist(), rel=1e-5)
    assert logits(trace.ids[0].tolist()) == logits(TEXT)
    longer = f"{TEXT} went"  # shares the prefix, but has no edits
    assert logits(longer) == pytest.approx(model.logits(longer)[-1].topk(3).values.tolist(), rel=1e-5)
    more = trace.edit({"block.0.head.0.output": 0})
    edits = [{"site": "block.0.head.0.output", "value": 0}]
    assert logits(TEXT, edits=edits) == pytest.approx(more.logits[-1].topk(3).values.tolist(), rel=1e-5)


def test_disconnect_cancels_the_request(local):
    async def disconnect():
        disconnected = asyncio.Event()
        disconnected.set()
        return await local.request_async("POST", "/api/heads", json.dumps({"model": "small"}), disconnected)

    assert run_in_background(disconnect()).result(60).status == 499


def test_internal_errors_return_a_500_response(model, caplog, monkeypatch):
    local = InProcessClient({"small": (model, ())})
    monkeypatch.setattr(type(model.tokenizer), "encode", lambda *_: 1 / 0)
    response = local.request("POST", "/api/tokens", json.dumps({"model": "small", "text": "a"}))
    assert (response.status, json.loads(response.body)["error"]["code"]) == (500, "internal_error")
    assert "ZeroDivisionError" in caplog.text


def test_clients_share_one_background_thread(model):
    for _ in range(3):
        InProcessClient({"small": (model, ())}).request("GET", "/api/models")
    assert [each.name for each in threading.enumerate()].count("clearhead-notebook") == 1
