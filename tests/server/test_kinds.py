"""Recurrent networks generate like any other model, and unsupported routes return an error."""

import httpx
import pytest
import torch

from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.language_model import LanguageModel
from tests.serving import make_model, running

ASKED = {"model": "gru", "text": "Once upon"}


@pytest.fixture(scope="module")
def client(registry_of_gru):
    with running(registry_of_gru) as made, made.client() as client:
        yield client


@pytest.fixture(scope="module")
def registry_of_gru():
    from tests.serving import make_registry

    tokenizer = make_model().tokenizer
    torch.manual_seed(0)
    network = Recurrent(RecurrentConfig("gru", tokenizer.n_vocab, n_context=128, n_block=1, d_model=16))
    made = make_registry(gru=LanguageModel(network, tokenizer))
    yield made
    made.close(cancel=True)


def test_completion_matches_generate(client, registry_of_gru):
    body = {"model": "gru", "prompt": "Once", "max_tokens": 12, "seed": 4, "temperature": 0.8}
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    [alone] = registry_of_gru.model("gru").generate(["Once"], 12, seed=4, temperature=0.8)
    assert response.json()["choices"][0]["text"] == alone
    messages = [{"role": "user", "content": "Hello"}]
    chat = client.post("/v1/chat/completions", json={"model": "gru", "messages": messages, "max_tokens": 4})
    assert chat.status_code == 200, chat.text


def test_model_list_includes_the_kind(client):
    [gru] = [each for each in client.get("/api/models").json()["models"] if each["name"] == "gru"]
    assert gru["kind"] == "gru"
    assert gru["config"] is None
    assert gru["parameters"] > 0


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/api/trace", {}),
        ("/api/site", {"site": "block.0.head.0.weights"}),
        ("/api/site", {"site": "logits"}),
        ("/api/lens", {}),
        ("/api/heads", {}),
        ("/api/weight", {"name": "block.0.head.0.W_Q"}),
        ("/api/neighbors", {"position": 0, "stage": "final"}),
    ],
)
def test_transformer_only_routes_return_an_error(client, path, more):
    body = {"model": "gru", **({} if path in ("/api/heads", "/api/weight") else ASKED), **more}
    response = client.post(path, json=body)
    assert response.status_code == 400, (path, response.text)
    message = response.json()["error"]["message"]
    assert "kind gru" in message
    assert "\n" not in message


def test_no_route_returns_a_server_error(client: httpx.Client):
    """Covers every POST route under /api/ except those for training and pulling."""
    document = client.get("/openapi.json").json()
    bodies = [ASKED, {**ASKED, "site": "final", "token": 3, "position": 0}]
    for path, methods in document["paths"].items():
        if "post" in methods and path.startswith("/api/") and "train" not in path and "pull" not in path:
            for body in bodies:
                response = client.post(path, json=body)
                assert response.status_code < 500, (path, response.text)


def test_senses_use_hidden_states(client):
    sentences = ["I am scared of bats", "I swing bats"]
    response = client.post("/api/senses", json={"model": "gru", "word": "bats", "sentences": sentences})
    assert response.status_code == 200, response.text
    result = response.json()
    assert result["stages"] == ["embedding", "block.0.state"]
    assert result["cosines"][0][0][1] == pytest.approx(1, abs=1e-5)
    assert result["cosines"][1][0][1] < 0.999
