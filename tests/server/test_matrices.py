"""Routes that return several matrices: every value matches the library's."""

import numpy as np
import pytest
import torch

TEXT = "the chicken crossed the road"


def read(response):
    assert response.status_code == 200, response.text
    values, parts = np.frombuffer(response.content, "<f4"), []
    for shape in response.headers["x-shape"].split(";"):
        sizes = [int(size) for size in shape.split(",")]
        parts.append(values[: np.prod(sizes)].reshape(sizes))
        values = values[np.prod(sizes) :]
    assert len(values) == 0
    return parts


def ask(client, route, **more):
    return client.post(f"/api/{route}", json={"model": "small", "text": TEXT, **more})


def check_error(response, words):
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]


def test_multiple_slices_match_the_trace_and_weights(client, server):
    reads = [
        {"site": "block.0.head.1.masked", "rows": [2, 5]},
        {"weight": "block.0.head.0.W_Q", "columns": [1, 3]},
        {"site": "block.0.normed.scale", "rows": [0, 1]},
        {"weight": "final.gain"},
    ]
    parts = read(ask(client, "sites", reads=reads))
    trace = server.model.inspect(TEXT)
    expected = (
        trace["block.0.head.1.masked"][2:5],
        server.model.weight("block.0.head.0.W_Q")[:, 1:3],
        trace["block.0.normed.scale"][:1],
        server.model.weight("final.gain"),
    )
    for part, tensor in zip(parts, expected, strict=True):
        assert np.array_equal(part, tensor.detach().numpy())


def test_invalid_slices_are_rejected(client):
    check_error(ask(client, "sites", reads=[{}]), "either a site or a weight")
    check_error(
        ask(client, "sites", reads=[{"site": "logits", "weight": "final.gain"}]), "a site or a weight"
    )
    check_error(ask(client, "sites", reads=[{"site": "logits"}, {"site": "block.9.input"}]), "blocks 0 to 0")
    check_error(
        ask(client, "sites", reads=[{"weight": "final.gain", "columns": [0, 1]}]),
        "columns were given for a vector",
    )
    check_error(ask(client, "sites", reads=[]), "reads")
    check_error(ask(client, "sites", reads=[{"site": "logits"}] * 65), "reads")


def test_total_response_size_is_limited(client, monkeypatch):
    monkeypatch.setattr("clearhead.api.inspection.MAX_VALUES", 1000)
    check_error(
        ask(client, "sites", reads=[{"site": "block.0.input"}] * 4), "1,792 numbers; the limit is 1,000"
    )


@pytest.mark.parametrize("cells", [64, 10, 1])
def test_patterns_are_pooled_attention_weights(client, server, cells):
    (patterns,) = read(ask(client, "patterns", cells=cells))
    T = len(server.model.inspect(TEXT))
    size = -(-T // cells)
    assert patterns.shape == (1, 2, -(-T // size), -(-T // size))
    assert np.allclose(patterns.sum(-1), 1, atol=1e-5)
    if size == 1:
        weights = torch.stack([head.weights for head in server.model.inspect(TEXT).block[0].head])
        assert np.array_equal(patterns[0], weights.detach().numpy())


def test_invalid_block_ranges_are_rejected(client):
    check_error(ask(client, "patterns", blocks=[0, 2]), "expected 0 <= start < stop <= 1")
    check_error(ask(client, "patterns", blocks=[0, 0]), "expected 0 <= start < stop <= 1")
    assert read(ask(client, "patterns", blocks=[0, 1], cells=8))[0].shape == (1, 2, 7, 7)


def test_streams_are_vector_norms(client, server):
    (streams,) = read(ask(client, "streams"))
    trace = server.model.inspect(TEXT)
    for number, site in enumerate(("input", "attention", "feedforward")):
        length = trace[f"block.0.{site}"].norm(dim=-1).detach().numpy()
        assert np.allclose(streams[0, number], length, rtol=1e-4, atol=1e-5)


def test_streams_reflect_edits(client):
    edits = [{"site": "block.0.attention", "value": 0.0}]
    (streams,) = read(ask(client, "streams", edits=edits))
    assert np.all(streams[0, 1] == 0)
    assert np.all(streams[0, 2] > 0)
