"""What is answered in this process is what the server answers, to the byte."""

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
def routes(model):
    return InProcessClient({"small": (model, ())})


def test_answers_are_the_server_s(model, routes):
    asked = {"model": "small", "text": TEXT}
    questions = {
        "/api/trace": {**asked, "count": 5},
        "/api/sites": {
            **asked,
            "reads": [{"site": "block.0.head.1.weights"}, {"weight": "block.0.head.0.W_Q"}],
        },
        "/api/patterns": {**asked, "cells": 3},
        "/api/streams": asked,
        "/api/tokens": asked,
        "/api/site": {**asked, "site": "block.7.input"},  # which is not there
        "/api/pull": {"name": "smollm2"},
        "/api/open": {"model": "elsewhere"},
    }
    registry = make_registry(small=model)
    with running(registry) as server, server.client() as client:
        for path, question in questions.items():
            there, here = client.post(path, json=question), routes.ask("POST", path, json.dumps(question))
            assert (here.status, here.body) == (there.status_code, there.content), path
            assert here.headers.get("x-shape") == there.headers.get("x-shape")
            assert here.headers["content-type"] == there.headers["content-type"]
    registry.close(cancel=True)
    [listed] = json.loads(routes.ask("GET", "/api/models").body)["models"]
    assert (listed["name"], listed["state"]) == ("small", "loaded")


def test_a_trace_made_in_python_stands_for_its_text(model):
    trace = model.inspect(TEXT, edit={"block.0.hidden": lambda x: 3 * x})
    routes = InProcessClient({"small": (model, (trace,))})

    def logits(text, **more):
        asked = {"model": "small", "text": text, "count": 3, "sites": False, **more}
        return [
            word["logit"]
            for word in json.loads(routes.ask("POST", "/api/trace", json.dumps(asked)).body)["next"]
        ]

    assert logits(TEXT) == pytest.approx(trace.logits[-1].topk(3).values.tolist(), rel=1e-5)
    assert logits(trace.ids[0].tolist()) == logits(TEXT)
    longer = f"{TEXT} went"  # which begins alike, and where nothing is edited
    assert logits(longer) == pytest.approx(model.logits(longer)[-1].topk(3).values.tolist(), rel=1e-5)
    more = trace.edit({"block.0.head.0.output": 0})
    put = [{"site": "block.0.head.0.output", "value": 0}]
    assert logits(TEXT, edits=put) == pytest.approx(more.logits[-1].topk(3).values.tolist(), rel=1e-5)


def test_who_leaves_is_not_worked_for(routes):
    async def leave():
        left = asyncio.Event()
        left.set()
        return await routes.answer("POST", "/api/heads", json.dumps({"model": "small"}), left)

    assert run_in_background(leave()).result(60).status == 499


def test_a_mistake_of_ours_is_an_answer(model, caplog, monkeypatch):
    routes = InProcessClient({"small": (model, ())})
    monkeypatch.setattr(type(model.tokenizer), "encode", lambda *_: 1 / 0)
    answer = routes.ask("POST", "/api/tokens", json.dumps({"model": "small", "text": "a"}))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (500, "internal_error")
    assert "ZeroDivisionError" in caplog.text


def test_all_share_one_thread(model):
    for _ in range(3):
        InProcessClient({"small": (model, ())}).ask("GET", "/api/models")
    assert [each.name for each in threading.enumerate()].count("clearhead-notebook") == 1
