"""An n-gram model on the server: it writes as any other, and what it has not is said in one line."""

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


def test_it_writes_what_it_would_alone(client, registry):
    body = {"model": "counts", "prompt": "Once", "max_tokens": 12, "seed": 4, "temperature": 0.8}
    answer = client.post("/v1/completions", json=body)
    assert answer.status_code == 200, answer.text
    alone = registry.model("counts").generate("Once", 12, seed=4, temperature=0.8)
    assert answer.json()["choices"][0]["text"] == alone


def test_its_kind_is_told(client):
    [told] = [each for each in client.get("/api/models").json()["models"] if each["name"] == "counts"]
    assert told["kind"] == "ngram"
    assert told["parameters"] > 0


def test_no_route_breaks_and_what_it_has_not_is_refused_in_a_line(client: httpx.Client):
    document = client.get("/openapi.json").json()
    bodies = [ASKED, {**ASKED, "site": "final", "token": 3, "position": 0}]
    for path, methods in document["paths"].items():
        if "post" in methods and path.startswith("/api/") and "train" not in path and "pull" not in path:
            for body in bodies:
                answer = client.post(path, json=body)
                assert answer.status_code < 500, (path, answer.text)
    answer = client.post("/api/trace", json=ASKED)
    assert answer.status_code == 400
    assert "ngram" in answer.json()["error"]["message"]
