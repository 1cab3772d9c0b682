import json
import math
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from clearhead.inspect.decoders import TracingDecoder
from clearhead.inspect.edits import Edit
from clearhead.inspect.weights import weight_names
from clearhead.server import disconnect, trace_cache

TEXT = "Once upon"
KINDS = ("lecture", "gpt2", "modern")


@pytest.fixture(scope="module")
def every_kind(registry_of_kinds, running_server):
    with running_server(registry_of_kinds) as made:
        yield made


def post(client, path, body, **headers):
    response = client.post(path, json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response


def matrix(response):
    shape = [int(size) for size in response.headers["x-shape"].split(",")]
    return torch.from_numpy(np.frombuffer(response.content, "<f4").reshape(shape).copy())


@pytest.mark.parametrize("kind", KINDS)
def test_every_site_matches_the_trace(every_kind, kind):
    trace = every_kind.registry.model(kind).inspect(TEXT)
    body = {"model": kind, "text": TEXT}
    with every_kind.client() as client:
        result = post(client, "/api/trace", body).json()
        assert [site["name"] for site in result["sites"]] == trace.sites()
        assert result["tokens"] == trace.tokens
        assert post(client, "/api/trace", {**body, "sites": False}).json() == {**result, "sites": []}
        for site in result["sites"]:
            expected = trace.read(site["name"])
            assert site["shape"] == list(expected.shape), site["name"]
            response = post(client, "/api/site", {**body, "site": site["name"]})
            assert response.content == expected.numpy().astype("<f4").tobytes(), site["name"]
            assert list(matrix(response).shape) == site["shape"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_matches_the_model(every_kind, kind):
    model = every_kind.registry.model(kind)
    with every_kind.client() as client:
        for name in weight_names(model.config):
            got = matrix(post(client, "/api/weight", {"model": kind, "name": name}))
            assert torch.equal(got, model.weight(name).detach()), name


def test_next_tokens_match_the_logits(client, server):
    result = post(client, "/api/trace", {"model": "small", "text": TEXT, "count": 3}).json()["next"]
    logits = server.model.logits(TEXT)[-1]
    assert [token["id"] for token in result] == logits.topk(3).indices.tolist()
    for token in result:
        assert token["logit"] == pytest.approx(logits[token["id"]].item(), abs=1e-5)
        assert token["probability"] == pytest.approx(logits.softmax(-1)[token["id"]].item(), abs=1e-5)
    by_ids = {"model": "small", "text": server.model.tokenizer.encode(TEXT), "count": 3}
    assert post(client, "/api/trace", by_ids).json()["next"] == result


def test_slices_of_sites_and_weights(client, server):
    whole = server.model.inspect(TEXT).read("logits")
    body = {"model": "small", "text": TEXT, "site": "logits"}
    for rows, columns in ((None, None), ([2, 5], None), (None, [10, 20]), ([0, 1], [256, 257])):
        got = matrix(post(client, "/api/site", {**body, "rows": rows, "columns": columns}))
        expected = whole[slice(*rows) if rows else slice(None), slice(*columns) if columns else slice(None)]
        assert got.shape == expected.shape
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
    weight = {"model": "small", "name": "embedding.W", "rows": [3, 5], "columns": [0, 4]}
    assert torch.equal(
        matrix(post(client, "/api/weight", weight)), server.model.weight("embedding.W").detach()[3:5, :4]
    )
    for bad in ([5, 2], [0, 0], [-1, 2], [0, 10], [0, 2**31 - 1], [1], [1, 2, 3], "ab", {}):
        assert client.post("/api/site", json={**body, "rows": bad}).status_code == 400


def test_masked_scores_are_null_in_json(client, server):
    body = {"model": "small", "text": TEXT, "site": "block.0.head.0.masked"}
    response = post(client, "/api/site", body, Accept="application/json")
    assert "Infinity" not in response.text
    result = json.loads(response.text)
    expected = server.model.inspect(TEXT).read(body["site"])
    assert result["shape"] == list(expected.shape)
    for row, there in zip(result["values"], expected.tolist(), strict=True):
        assert row == [None if value == -math.inf else value for value in there]
    assert result["values"][0][1:] == [None] * 8


@pytest.mark.parametrize(
    ("edits", "expected_edits"),
    [
        ([{"site": "block.0.attention", "value": 0}], {"block.0.attention": 0.0}),
        (
            [{"site": "block.0.attention", "value": 1.5, "at": [1, -1]}],
            {"block.0.attention": Edit(1.5, at=[1, -1])},
        ),
        ([{"site": "block.0.input", "scale": -2}], {"block.0.input": Edit(lambda there: there * -2)}),
        (
            [{"site": "block.0.input", "value": [[0.5] * 16], "at": [0]}],
            {"block.0.input": Edit(torch.full((1, 16), 0.5), at=[0])},
        ),
        (
            [{"site": "block.0.head.1.output", "value": 0}, {"site": "block.0.feedforward", "scale": 3}],
            {"block.0.head.1.output": 0.0, "block.0.feedforward": Edit(lambda there: there * 3)},
        ),
    ],
)
def test_edits_match_python(client, server, edits, expected_edits):
    expected = server.model.inspect(TEXT, edit=expected_edits).read("logits")
    body = {"model": "small", "text": TEXT, "site": "logits", "edits": edits}
    got = matrix(post(client, "/api/site", body))
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(got, server.model.inspect(TEXT).read("logits"), atol=1e-3)


def test_patching_from_another_text_matches_python(client, server):
    other = server.model.inspect("Twice bad")
    expected = server.model.inspect(TEXT, edit={"block.0.input": Edit(other, at=[0])}).read("logits")
    edits = [{"site": "block.0.input", "text": "Twice bad", "at": [0]}]
    got = matrix(
        post(client, "/api/site", {"model": "small", "text": TEXT, "site": "logits", "edits": edits})
    )
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"site": "nowhere"},
        {"site": "block.9.input"},
        {"site": "__class__"},
        {"site": "block.0.head.-1.query"},
        {"text": ""},
        {"text": [257]},
        {"text": "a" * 129},
        {"rows": [3, 3]},
        {"edits": [{"site": "logits"}]},
        {"edits": [{"site": "nowhere", "value": 1}]},
        {"edits": [{"site": "block.0.input", "value": 1, "scale": 1}]},
        {"edits": [{"site": "block.0.input", "value": 1, "at": [99]}]},
        {"edits": [{"site": "block.0.input", "value": [1, 2, 3]}]},
        {"edits": [{"site": "block.0.input", "value": []}]},
        {"edits": [{"site": "block.0.input", "value": 0, "at": []}]},
        {"edits": [{"site": "block.0.input", "text": f"Text {i:03}."} for i in range(17)]},
        {"edits": [{"site": "block.0.input", "value": [[1, 2], [3]]}]},
        {"edits": [{"site": "block.0.input", "text": "short"}]},
        {"edits": [{"site": "block.0.input", "text": ""}]},
        {"edits": [{"site": "block.0.input", "scale": 1e30}] * 257},
    ],
    ids=str,
)
def test_invalid_requests_are_rejected(client, wrong):
    body = {"model": "small", "text": TEXT, "site": "logits", **wrong}
    response = client.post("/api/site", json=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"]


def test_non_finite_numbers_are_null(client):
    edits = [{"site": "block.0.input", "scale": 1e30}, {"site": "block.0.feedforward", "scale": 1e30}]
    response = post(client, "/api/trace", {"model": "small", "text": TEXT, "edits": edits})
    assert "NaN" not in response.text
    assert "Infinity" not in response.text


@pytest.mark.parametrize("name", ["nowhere", "__class__", "block.0", "block.0.head.7.W_Q", "block.-1.W_1"])
def test_unknown_weights_are_rejected(client, name):
    assert client.post("/api/weight", json={"model": "small", "name": name}).status_code == 400


def test_model_list_includes_details(client, server):
    small, broken = client.get("/api/models").json()["models"]
    assert small["parameters"] == server.model.config.n_parameter
    assert small["config"] == json.loads(json.dumps(server.model.config.to_json()))
    assert small["has_chat_template"]
    assert broken["error"] == "could not be loaded"


def test_text_is_tokenized(client, server):
    result = post(client, "/api/tokens", {"model": "small", "text": "Ab é"}).json()
    assert result["ids"] == server.model.tokenizer.encode("Ab é")
    assert result["tokens"] == server.model.tokenizer.pieces(result["ids"])


def test_token_ids_are_converted_to_text(client, server):
    model = server.model
    ids = [model.config.n_vocab - 1, *model.tokenizer.encode(" é b"), 0]
    result = post(client, "/api/token_texts", {"model": "small", "ids": ids}).json()
    assert result == {"tokens": model.tokenizer.pieces(ids)}
    for wrong, message in (
        ([model.config.n_vocab], f"token {model.config.n_vocab} does not exist"),
        ([], "ids"),
        ([0] * 4097, "ids"),
        ([-1], "ids"),
    ):
        response = client.post("/api/token_texts", json={"model": "small", "ids": wrong})
        assert response.status_code == 400
        assert message in response.json()["error"]["message"]


def test_errors_name_the_invalid_field(client):
    edits = [{"site": "block.0.input", "value": 0}, {"site": "block.0.input", "value": 0, "at": []}]
    error = client.post("/api/trace", json={"model": "small", "text": TEXT, "edits": edits}).json()["error"]
    assert error["param"] == "edits.1.at"
    assert error["message"] == "edits.1.at: expected a non-empty list"


def test_edits_at_the_same_site_apply_in_order(client, server):
    edits = [
        {"site": "block.0.input", "value": 2},
        {"site": "block.0.feedforward", "scale": 2},
        {"site": "block.0.input", "scale": 3, "at": [1]},
    ]
    trace = server.model.inspect(TEXT)
    for change in (
        {"block.0.input": 2.0},
        {"block.0.feedforward": lambda there: there * 2},
        {"block.0.input": Edit(lambda there: there * 3, at=[1])},
    ):
        trace = trace.edit(change)
    got = matrix(
        post(client, "/api/site", {"model": "small", "text": TEXT, "site": "logits", "edits": edits})
    )
    torch.testing.assert_close(got, trace.read("logits"), atol=1e-5, rtol=1e-5)


class Runs:
    """Counts forward passes, in total and running concurrently. Passes wait while `go` is clear."""

    def __init__(self):
        self.started, self.now, self.most = 0, 0, 0
        self.lock, self.go = threading.Lock(), threading.Event()
        self.go.set()

    def __call__(self, *_):
        with self.lock:
            self.started += 1
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.go.wait(60)
        with self.lock:
            self.now -= 1


@contextmanager
def watched(server):
    """Count the forward passes of the server's model."""
    runs = Runs()
    hook = server.model.network.embedding.register_forward_pre_hook(runs)
    try:
        yield runs
    finally:
        runs.go.set()
        hook.remove()


def test_patch_sources_run_once(client, server):
    edits = [{"site": "block.0.input", "text": "Twice bad", "at": [i % 9]} for i in range(256)]
    with watched(server) as runs:
        post(client, "/api/trace", {"model": "small", "text": TEXT, "edits": edits})
    assert runs.started <= 3  # one each for the text, the source and the edits


def test_common_prefix_is_reused(client, server, monkeypatch):
    lengths = []
    run_blocks = TracingDecoder.run_blocks
    monkeypatch.setattr(
        TracingDecoder,
        "run_blocks",
        lambda self, ids, watch: lengths.append(ids.shape[1]) or run_blocks(self, ids, watch),
    )
    texts = ["Zoe, letter by letter", "Zoe, letter by letters", "Zoe, letter by", "Zoe, lines"]
    for text in texts:
        found = matrix(post(client, "/api/site", {"model": "small", "text": text, "site": "final"}))
        torch.testing.assert_close(found, server.model.inspect(text)["final"], rtol=1e-4, atol=1e-5)
    assert lengths == [1, 1, 4]
    # An edited trace is never reused as a prefix.
    edit = {"site": "block.0.head.0.output", "value": 0}
    post(client, "/api/site", {"model": "small", "text": "Edited", "site": "logits", "edits": [edit]})
    plain = matrix(post(client, "/api/site", {"model": "small", "text": "Edited?", "site": "final"}))
    torch.testing.assert_close(plain, server.model.inspect("Edited?")["final"], rtol=1e-4, atol=1e-5)


def patched(name):
    edits = [{"site": "block.0.input", "text": f"{name} bad {i:02}", "at": [0]} for i in range(16)]
    return {"model": "small", "text": TEXT, "edits": edits}


def test_disconnect_cancels_the_request(server, caplog, monkeypatch):
    events = []

    async def in_thread(work):
        return await disconnect.in_thread(lambda cancelled: events.append(cancelled) or work(cancelled))

    monkeypatch.setattr(trace_cache, "in_thread", in_thread)
    server.log.clear()
    with watched(server) as runs, server.client() as client:
        runs.go.clear()
        server.abandon("/api/trace", patched("Leave"), once=lambda: runs.started)
        server.until(events[0].is_set)
        runs.go.set()
        server.until(lambda: any("POST /api/trace 499" in line for line in server.log))
        post(client, "/api/trace", {"model": "small", "text": "another text"})
        assert runs.started == 2  # the running pass, and that of the other request
    assert not [
        record for record in caplog.records if record.levelname == "ERROR"
    ]  # a disconnect is not an error


def test_work_of_disconnected_clients_does_not_accumulate(server):
    with watched(server) as runs:
        runs.go.clear()
        for i in range(5):
            server.abandon("/api/trace", patched(f"Pile {i}"), once=lambda: runs.started)
        runs.go.set()
        with server.client() as client:
            post(client, "/api/trace", {"model": "small", "text": "one more text"})
        assert runs.most == 1
