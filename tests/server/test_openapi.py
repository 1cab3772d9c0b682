"""The OpenAPI document: it tells of everything there is, and the server does what it tells."""

import copy
import dataclasses
import hashlib
import json
import re

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from clearhead.formats.pulled import CATALOGUE
from clearhead.server import page
from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, ModelRegistry
from clearhead.server.responses import ALWAYS

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
EXAMPLES = 25  # of each operation, and each kind
APP = make_api(ModelRegistry([]), ServerMetrics(ModelRegistry([])))
DOCUMENT = APP.openapi()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}


SITES = ["logits", "block.0.input", "block.0.head.1.masked", "block.0.normed.scale"]
SLICE = {"rows": [None, [0, 1]], "columns": [None, [0, 1]]}
BLOCKS = {"blocks": [None, [0, 1]]}
WORD = {"word": [97, 98], "position": [-1, 0]}
THERE = {
    "EditRequest": {
        "site": SITES[:3],
        "value": [None],
        "scale": [0, 0.5, -2],
        "text": [None],
        "at": [None, [0]],
        "columns": [None, [0]],
    },
    "Read": {"site": SITES, "weight": [None], **SLICE},
    "SiteRequest": {"site": SITES, **SLICE},
    "TraceRequest": {"count": [1, 10]},
    "PatternsRequest": {"cells": [1, 24], **BLOCKS},
    "CompareRequest": {"text": ["a cat"], "other": [{"model": "small", "text": "a hat"}], **BLOCKS},
    "EffectsRequest": {"source": [None], **WORD, **BLOCKS},
    "AttributeRequest": {"through": [[], [{"block": 0, "head": 1, "source": 0}]], "heads": [0, 3], **WORD},
    "WhyRequest": {"block": [0], "head": [0, 1], "looking": [-1], "looked_at": [0], "count": [5]},
    "LensRequest": {"rows": [None, [0, 1]], "word": [None, 97]},
    "SensesRequest": {"word": ["a"], "sentences": [["a b a", "c"]]},
    "NeighboursRequest": {"position": [-1], "stage": ["embedding", "final"], "along": [None], "count": [3]},
    "LabRequest": {"name": ["attention"], "model": [None], "settings": [{}, {"boost": 10}]},
    "WeightRequest": {"name": ["embedding.W", "block.0.head.0.QK"], **SLICE},
}


def with_a_model(document):
    """The document in which a model is that of the test's server: else every answer is that there is none.

    The token is always the right one; what comes of others has tests of its own.
    """
    told = copy.deepcopy(document)
    del told["security"]
    told["paths"]["/v1/models/{model}"]["get"]["parameters"][0]["schema"] = {"enum": ["small"]}
    for name, schema in told["components"]["schemas"].items():
        if name.endswith("Request") and "model" in schema["properties"]:
            schema["properties"]["model"] = {"enum": ["small"]}
    return told


def with_all_that_is_there(document):
    """Also sites and weights, and edits that can be made: so that some of what is asked can be done."""
    told = with_a_model(document)
    schemas = told["components"]["schemas"]
    for name, known in THERE.items():
        schemas[name]["properties"].update({each: {"enum": values} for each, values in known.items()})
    for schema in schemas.values():
        own = schema.get("properties", {})
        if {"model", "text", "edits"} <= set(own):
            own["text"] = {"enum": ["a cat", [97, 98, 99]]}
    schemas["EditRequest"]["required"] = ["site", "scale"]
    schemas["Read"]["required"] = ["site"]
    schemas["PullRequest"]["properties"]["name"] = {"enum": ["tiny"]}
    return told


def soon(body):
    """The same request, and as right or wrong as before; but the text ends early."""
    seconds = body.get("seconds") if isinstance(body, dict) else ""
    if seconds is None or (isinstance(seconds, float | int) and 0.02 < seconds <= 3600):
        return {**body, "seconds": 0.02}
    return body


@pytest.fixture(scope="module")
def server(registry, running_server, tmp_path_factory):
    """One that offers to pull a model, which is there already."""
    home, content = tmp_path_factory.mktemp("home"), b"GGUF"
    with pytest.MonkeyPatch.context() as patch:
        tiny = dataclasses.replace(
            CATALOGUE["smollm2"], name="tiny", size=4, sha256=hashlib.sha256(content).hexdigest()
        )
        patch.setitem(CATALOGUE, "tiny", tiny)
        tiny.place(home).parent.mkdir(parents=True)
        tiny.place(home).write_bytes(content)
        with running_server(registry, library=ModelLibrary([], home, LoadOptions("cpu"))) as made:
            yield made


@pytest.fixture(scope="module")
def api(server):
    with server.client() as client:
        assert client.get("/openapi.json").json() == DOCUMENT
    return {
        GenerationMode.POSITIVE: schemathesis.openapi.from_dict(with_all_that_is_there(DOCUMENT)),
        GenerationMode.NEGATIVE: schemathesis.openapi.from_dict(with_a_model(DOCUMENT)),
    }


# Of a server that trains nothing: what they answer where there are runs, tests/server/test_training.py asks.
OF_RUNS = [name for name, told in OPERATIONS.items() if re.search("/api/(runs|train)", name)]
TAKING = [name for name, told in OPERATIONS.items() if "requestBody" in told or "parameters" in told]
ASKED = [
    *((name, GenerationMode.POSITIVE, EXAMPLES if name in TAKING else 1) for name in OPERATIONS),
    *((name, GenerationMode.NEGATIVE, EXAMPLES) for name in TAKING),
]


@pytest.mark.parametrize(
    ("name", "mode", "examples"), ASKED, ids=[f"{mode.value} {name}" for name, mode, _ in ASKED]
)
def test_the_server_does_what_the_document_tells(server, api, name, mode, examples):
    method, path = name.split()
    checks = [*CHECKS, negative_data_rejection] if mode is GenerationMode.NEGATIVE else CHECKS
    answered = set()

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=api[mode][path][method].as_strategy(generation_mode=mode),
        accept=st.sampled_from(["*/*", "application/json"]),
    )
    def ask(case, accept):
        case.body = soon(case.body) if path.startswith("/v1/") else case.body
        response = case.call(base_url=server.url, session=session, headers={"Accept": accept}, timeout=60)
        answered.add(response.status_code)
        # Too long is no, too, which this check does not know.
        known = CHECKS if response.status_code == 413 else checks
        case.validate_response(response, checks=known)

    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {server.credentials.token}"
        ask()
    assert 200 in answered or mode is GenerationMode.NEGATIVE or name in OF_RUNS


def test_everything_is_told():
    files = {f"/{path.relative_to(page.PAGE).as_posix()}" for path in page.PAGE.rglob("*")}
    from_routes = {
        (method, path) for method, path in routes_of(APP) if method != "HEAD" and path not in {"/", *files}
    }
    assert {tuple(name.split()) for name in OPERATIONS} == from_routes
    for name, told in OPERATIONS.items():
        assert told["summary"], name
        assert told["description"].endswith("."), name
        assert {str(status) for status in ALWAYS} | {"200"} <= told["responses"].keys(), name
        if "requestBody" in told or "parameters" in told:
            assert {"404", "409" if name in ("POST /api/pull", *OF_RUNS) else "503"} <= told[
                "responses"
            ].keys(), name
        for status, answer in told["responses"].items():
            assert answer["description"], (name, status)
            assert answer["content"], (name, status)
            assert all(each["schema"] for each in answer["content"].values()), (name, status)
        assert "Retry-After" in told["responses"]["429"]["headers"]
        assert "WWW-Authenticate" in told["responses"]["401"]["headers"]
        assert list(told["responses"]["401"]["content"]) == ["application/json"]
    assert set(OPERATIONS["POST /v1/completions"]["responses"]["200"]["content"]) == {
        "application/json",
        "text/event-stream",
    }
    for name in ("POST /api/site", "POST /api/weight"):
        given = OPERATIONS[name]["responses"]["200"]
        assert set(given["content"]) == {"application/json", "application/octet-stream"}
        assert "X-Shape" in given["headers"]
    for name in ("POST /api/sites", "POST /api/patterns", "POST /api/streams"):
        given = OPERATIONS[name]["responses"]["200"]
        assert set(given["content"]) == {"application/octet-stream"}
        assert given["headers"]["X-Shape"]["required"]


def routes_of(app):
    """Every method and path that the application answers, however deep it was put in."""
    found = set()
    listed = list(app.routes)
    while listed:
        route = listed.pop()
        inner = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if inner:
            listed.extend(inner)
        else:
            found.update((method, route.path) for method in route.methods)
    return found


def test_all_that_is_named_is_there():
    schemas = DOCUMENT["components"]["schemas"]
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT)))
    assert named == schemas.keys()
    assert "ChatChunk" in named
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if name.endswith("Request"):
            assert schema["description"], name


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/completions", {"prompt": "a", "logprobs": 2}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "logprobs": True}),
        ("/v1/completions", {"prompt": "a", "regex": "a" * 20, "logit_bias": {"97": -100}}),
    ],
)
def test_events_are_as_the_document_tells(client, path, asked):
    """The last of these comes to its end in the midst, with a refusal."""
    told = OPERATIONS[f"POST {path}"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    _, as_json = told["properties"]["data"]["anyOf"]
    schema = {**as_json["contentSchema"], "components": DOCUMENT["components"]}
    options = {"model": "small", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 3}
    answer = client.post(path, json={**asked, **options})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n")[:-1]]
    assert len(events) > 3 or "logit_bias" in asked
    for event in events[:-1] if events[-1] == "[DONE]" else events:
        jsonschema.validate(json.loads(event), schema)
    assert "error" in json.loads(events[-1]) if "logit_bias" in asked else events[-1] == "[DONE]"
