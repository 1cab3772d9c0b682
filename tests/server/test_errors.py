"""Errors carry a code and the values in their message, so that clients can translate them."""

import pytest

from clearhead.api.base import MAX_CHARACTERS

WEIGHTS = "block.0.head.0.weights"


@pytest.mark.parametrize(
    ("route", "body", "code", "values"),
    [
        ("trace", {"model": "none", "text": "a"}, "model_not_found", {"name": "none"}),
        ("trace", {"text": ""}, "text_empty", {}),
        ("trace", {"text": "a" * (MAX_CHARACTERS + 1)}, "text_too_long", {"most": MAX_CHARACTERS}),
        ("senses", {"word": "dog", "sentences": ["a cat"]}, "word_too_rare", {"word": "dog", "count": 0}),
        (
            "senses",
            {"word": "cat", "sentences": ["cat " * 2000]},
            "too_many_tokens",
            {"count": 8000, "most": 4096},
        ),
        (
            "neighbors",
            {"text": "abc", "along": {"start": "ab", "end": "c"}},
            "not_one_token",
            {"word": "ab", "count": 2},
        ),
        (
            "neighbors",
            {"text": "abc", "position": 7},
            "no_such_number",
            {"what": "position", "number": 7, "last": 2},
        ),
        ("compare", {"text": "abc", "other": {"model": "small", "text": "x"}}, "nothing_in_common", {}),
        (
            "sites",
            {"text": "abc", "reads": [{"site": "block.0.nose"}]},
            "site_unknown",
            {"site": "block.0.nose"},
        ),
        (
            "trace",
            {"text": "abc", "edits": [{"site": WEIGHTS, "value": [[1.0, 0.0]]}]},
            "edit_does_not_fit",
            {"site": WEIGHTS},
        ),
        ("trace", {"text": "abc", "nose": 1}, "invalid_request", {}),
    ],
)
def test_errors_have_a_code_and_values(client, route, body, code, values):
    response = client.post(f"/api/{route}", json={"model": "small", **body})
    error = response.json()["error"]
    assert response.status_code in (400, 404), error
    assert (error["code"], error["values"]) == (code, values)


IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"stop": ""}, "stop: expected a non-empty string"),
        ({"stop": ["a", ""]}, "stop.1: expected a non-empty string"),
        ({"messages": []}, "messages: expected a non-empty list"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}]},
            "messages.0.content.1.type: images are not supported: this server reads only text; send the message "
            "without them",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "x"}]}]},
            "messages.0.content.0.type: Input should be 'text'",
        ),
    ],
)
def test_errors_say_what_was_expected(client, body, message):
    given = {"model": "small", "messages": [{"role": "user", "content": "a"}]}
    response = client.post("/v1/chat/completions", json=given | body)
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


def test_error_for_text_longer_than_the_context(client, server):
    most = server.model.config.n_context
    error = client.post("/api/trace", json={"model": "small", "text": "a" * (most + 3)}).json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["values"]["most"] == most
    assert error["values"]["count"] > most


def test_long_values_are_truncated(client):
    name = "x" * 150
    word = "y" * 180
    error = client.post("/api/trace", json={"model": name, "text": "a"}).json()["error"]
    assert error["values"] == {"name": name}
    along = {"start": word * 20, "end": "c"}
    response = client.post("/api/neighbors", json={"model": "small", "text": "abc", "along": along})
    assert all(len(str(value)) <= 200 for value in response.json()["error"]["values"].values())
