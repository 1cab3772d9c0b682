"""The OpenAPI document describes every route, and the server conforms to it."""

import copy
import dataclasses
import hashlib
import json
import os
import re
from collections import Counter

import jsonschema
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearhead.formats.pulled import CATALOG
from clearhead.page.assets import SITE
from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, ModelRegistry
from clearhead.server.route_descriptions import COMMON_ERRORS

EXAMPLES = int(os.environ.get("CLEARHEAD_EXAMPLES", "10"))  # per operation and mode
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
TOKEN = {"token": [97, 98], "position": [-1, 0]}
LESSON_TEXTS = ["a cat", [97, 98, 99]]
THERE = {
    "EditRequest": {
        "site": SITES[:3],
        "value": [None],
        "scale": [0, 0.5, -2],
        "text": [None],
        "at": [None, [0]],
        "columns": [None, [0]],
    },
    "SliceRead": {"site": SITES, "weight": [None], **SLICE},
    "SiteRequest": {"site": SITES, **SLICE},
    "TraceRequest": {"count": [1, 10]},
    "PatternsRequest": {"cells": [1, 24], **BLOCKS},
    "CompareRequest": {"text": ["a cat"], "other": [{"model": "small", "text": "a hat"}], **BLOCKS},
    "EffectsRequest": {"source": [None], **TOKEN, **BLOCKS},
    "AttributeRequest": {"through": [[], [{"block": 0, "head": 1, "source": 0}]], "heads": [0, 3], **TOKEN},
    "WhyRequest": {"block": [0], "head": [0, 1], "query_position": [-1], "key_position": [0], "count": [5]},
    "LensRequest": {"rows": [None, [0, 1]], "token": [None, 97]},
    "SensesRequest": {"word": ["a"], "sentences": [["a b a", "c"]]},
    "NeighborsRequest": {"position": [-1], "stage": ["embedding", "final"], "along": [None], "count": [3]},
    "LabRequest": {"name": ["attention"], "model": [None], "settings": [{}, {"boost": 10}]},
    "LessonRequest": {"text": LESSON_TEXTS},
    "GradientRequest": {"text": LESSON_TEXTS, "name": [*SITES, "embedding.W"], **SLICE},
    "LogitErrorsRequest": {"text": LESSON_TEXTS, "position": [-1, 0]},
    "ChainRequest": {
        "text": LESSON_TEXTS,
        "name": [*SITES, "embedding.W"],
        "row": [0, 1],
        "column": [None, 1],
    },
    "UpdateRequest": {"text": LESSON_TEXTS, "name": ["final.gain"], "row": [0, 1], "column": [None]},
    "StepRequest": {"text": LESSON_TEXTS, "other": [None, "a hat"], "count": [1, 3]},
    "WeightRequest": {"name": ["embedding.W", "block.0.head.0.QK"], **SLICE},
}


def with_model_name(document):
    """Restrict model names to the test server's model; otherwise every response would be a 404.

    The token is always valid; other tests cover invalid tokens.
    """
    changed = copy.deepcopy(document)
    del changed["security"]
    changed["paths"]["/v1/models/{model}"]["get"]["parameters"][0]["schema"] = {"enum": ["small"]}
    for name, schema in changed["components"]["schemas"].items():
        if name.endswith("Request") and "model" in schema["properties"]:
            schema["properties"]["model"] = {"enum": ["small"]}
    return changed


def with_existing_names(document):
    """Restrict sites, weights and edits to existing ones, so that some requests succeed."""
    changed = with_model_name(document)
    schemas = changed["components"]["schemas"]
    for name, known in THERE.items():
        schemas[name]["properties"].update({each: {"enum": values} for each, values in known.items()})
    for schema in schemas.values():
        own = schema.get("properties", {})
        if {"model", "text", "edits"} <= set(own):
            own["text"] = {"enum": ["a cat", [97, 98, 99]]}
    # Only an assistant's message may have calls, and only one with calls may have no content.
    schemas["Message"]["required"] = ["role", "content"]
    schemas["Message"]["properties"]["tool_calls"] = {"enum": [None]}
    schemas["EditRequest"]["required"] = ["site", "scale"]
    schemas["SliceRead"]["required"] = ["site"]
    schemas["PullRequest"]["properties"]["name"] = {"enum": ["tiny"]}
    return changed


def limit_tokens(body):
    """Return the request with a short time limit, which does not change its validity."""
    seconds = body.get("seconds") if isinstance(body, dict) else ""
    if seconds is None or (isinstance(seconds, float | int) and 0.02 < seconds <= 3600):
        return {**body, "seconds": 0.02}
    return body


@pytest.fixture(scope="module")
def server(registry, running_server, tmp_path_factory):
    """A server that can pull a model, which is already downloaded."""
    home, content = tmp_path_factory.mktemp("home"), b"GGUF"
    with pytest.MonkeyPatch.context() as patch:
        tiny = dataclasses.replace(
            CATALOG["smollm2"], name="tiny", size=4, sha256=hashlib.sha256(content).hexdigest()
        )
        patch.setitem(CATALOG, "tiny", tiny)
        tiny.place(home).parent.mkdir(parents=True)
        tiny.place(home).write_bytes(content)
        with running_server(registry, library=ModelLibrary([], home, LoadOptions("cpu"))) as made:
            yield made


@pytest.fixture(scope="module")
def api(server):
    with server.client() as client:
        assert client.get("/openapi.json").json() == DOCUMENT
    # Imported here because collecting the tests imports this module, and only the slow ones need it.
    import schemathesis

    return {
        "positive": schemathesis.openapi.from_dict(with_existing_names(DOCUMENT)),
        "negative": schemathesis.openapi.from_dict(with_model_name(DOCUMENT)),
    }


# This server does not train; tests/server/test_training_process.py covers the routes for runs.
OF_RUNS = [name for name, operation in OPERATIONS.items() if re.search("/api/(runs|train)", name)]
# Their success needs a run, which this server does not have; tests/server/test_run_lessons.py has one.
NEEDING_RUNS = [*OF_RUNS, "POST /api/lesson/moves", "POST /api/lesson/batch"]
TAKING = [
    name for name, operation in OPERATIONS.items() if "requestBody" in operation or "parameters" in operation
]
ASKED = [
    *((name, "positive", EXAMPLES if name in TAKING else 1) for name in OPERATIONS),
    *((name, "negative", EXAMPLES) for name in TAKING),
]


@pytest.mark.parametrize(
    ("name", "mode", "examples"), ASKED, ids=[f"{mode} {name}" for name, mode, _ in ASKED]
)
@pytest.mark.slow
def test_server_conforms_to_the_openapi_document(server, api, name, mode, examples):
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as of_openapi

    method, path = name.split()
    checks = [
        not_a_server_error,
        of_openapi.status_code_conformance,
        of_openapi.content_type_conformance,
        of_openapi.response_headers_conformance,
        of_openapi.response_schema_conformance,
    ]
    rejection = [of_openapi.negative_data_rejection] if mode == "negative" else []
    statuses = Counter()

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=api[mode][path][method].as_strategy(generation_mode=GenerationMode(mode)),
        accept=st.sampled_from(["*/*", "application/json"]),
    )
    def ask(case, accept):
        generates = path.startswith("/v1/") and path != "/v1/embeddings"
        case.body = limit_tokens(case.body) if generates else case.body
        if path == "/v1/embeddings" and mode == "positive":
            # Any number other than the width is rejected, and so are ids that are not in the vocabulary.
            given = case.body["input"] if isinstance(case.body["input"], str) else "Once"
            case.body = case.body | {"dimensions": None, "input": given}
        response = case.call(base_url=server.url, session=session, headers={"Accept": accept}, timeout=60)
        statuses[response.status_code] += 1
        # This check does not count 413 as a rejection.
        known = [] if response.status_code == 413 else rejection
        case.validate_response(response, checks=[*checks, *known])

    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {server.credentials.token}"
        ask()
    print(f"{mode} {name}: {dict(statuses)}")  # noqa: T201 (to count the answers)
    assert 200 in statuses or mode == "negative" or name in NEEDING_RUNS


def test_every_route_is_documented():
    files = {f"/{path.relative_to(SITE).as_posix()}" for path in SITE.rglob("*")}
    from_routes = {
        (method, path) for method, path in routes_of(APP) if method != "HEAD" and path not in {"/", *files}
    }
    assert {tuple(name.split()) for name in OPERATIONS} == from_routes
    for name, operation in OPERATIONS.items():
        assert operation["summary"], name
        assert operation["description"].endswith("."), name
        assert {str(status) for status in COMMON_ERRORS} | {"200"} <= operation["responses"].keys(), name
        if "requestBody" in operation or "parameters" in operation:
            assert {"404", "409" if name in ("POST /api/pull", *OF_RUNS) else "503"} <= operation[
                "responses"
            ].keys(), name
        for status, response in operation["responses"].items():
            assert response["description"], (name, status)
            assert response["content"], (name, status)
            assert all(each["schema"] for each in response["content"].values()), (name, status)
        assert "Retry-After" in operation["responses"]["429"]["headers"]
        assert "WWW-Authenticate" in operation["responses"]["401"]["headers"]
        assert list(operation["responses"]["401"]["content"]) == ["application/json"]
    assert set(OPERATIONS["POST /v1/completions"]["responses"]["200"]["content"]) == {
        "application/json",
        "text/event-stream",
    }
    for name in ("POST /api/site", "POST /api/weight"):
        success = OPERATIONS[name]["responses"]["200"]
        assert set(success["content"]) == {"application/json", "application/octet-stream"}
        assert "X-Shape" in success["headers"]
    for name in ("POST /api/sites", "POST /api/patterns", "POST /api/streams"):
        success = OPERATIONS[name]["responses"]["200"]
        assert set(success["content"]) == {"application/octet-stream"}
        assert success["headers"]["X-Shape"]["required"]


def routes_of(app):
    """Return every method and path of the application, including nested routers."""
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


def test_schema_references_resolve():
    schemas = DOCUMENT["components"]["schemas"]
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT)))
    assert named == schemas.keys()
    assert "ChatChunk" in named
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if name.endswith("Request"):
            assert schema["description"], name


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a", "logprobs": 2}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "logprobs": True}),
        ("/v1/completions", {"prompt": "a", "regex": "a" * 20, "logit_bias": {"97": -100}}),
    ],
)
def test_streamed_events_conform_to_the_openapi_document(client, path, body):
    """The last of these streams ends early with an error."""
    schema = OPERATIONS[f"POST {path}"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    _, as_json = schema["properties"]["data"]["anyOf"]
    schema = {**as_json["contentSchema"], "components": DOCUMENT["components"]}
    options = {"model": "small", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 3}
    response = client.post(path, json={**body, **options})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n")[:-1]]
    assert len(events) > 3 or "logit_bias" in body
    for event in events[:-1] if events[-1] == "[DONE]" else events:
        jsonschema.validate(json.loads(event), schema)
    assert "error" in json.loads(events[-1]) if "logit_bias" in body else events[-1] == "[DONE]"
