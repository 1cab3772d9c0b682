"""N-gram models generate like any other model, and unsupported routes return an error."""

import httpx
import numpy as np
import pytest

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.language_model import LanguageModel
from clearhead.text.tokens import Tokens
from tests.serving import make_model, make_registry, running

ASKED = {"model": "counts", "text": "Once upon"}


@pytest.fixture(scope="module")
def registry():
    tokenizer = make_model().tokenizer
    ids = tokenizer.encode("Once upon a time there was a hen. The hen saw a duck. " * 5)
    tokens = Tokens.of(np.array([tokenizer.end_id, *ids, tokenizer.end_id]))
    network = estimate(count_ngrams(tokens, tokenizer.n_vocab, tokenizer.end_id, 3))
    made = make_registry(counts=LanguageModel(network, tokenizer))
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="module")
def client(registry):
    with running(registry) as made, made.client() as client:
        yield client


def test_completion_matches_generate(client, registry):
    body = {"model": "counts", "prompt": "Once", "max_tokens": 12, "seed": 4, "temperature": 0.8}
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    alone = registry.model("counts").generate("Once", 12, seed=4, temperature=0.8)
    assert response.json()["choices"][0]["text"] == alone


def test_model_list_includes_the_kind(client):
    [details] = [each for each in client.get("/api/models").json()["models"] if each["name"] == "counts"]
    assert details["kind"] == "ngram"
    assert details["parameters"] > 0


def test_no_server_errors_and_unsupported_routes_return_400(client: httpx.Client):
    document = client.get("/openapi.json").json()
    bodies = [ASKED, {**ASKED, "site": "final", "token": 3, "position": 0}]
    for path, methods in document["paths"].items():
        if "post" in methods and path.startswith("/api/") and "train" not in path and "pull" not in path:
            for body in bodies:
                response = client.post(path, json=body)
                assert response.status_code < 500, (path, response.text)
    response = client.post("/api/trace", json=ASKED)
    assert response.status_code == 400
    assert "ngram" in response.json()["error"]["message"]
