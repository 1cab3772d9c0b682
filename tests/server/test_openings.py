"""The routes for the text and head that a model opens with, and for its examples."""

from clearhead.labs.opening import find_opening
from clearhead.text.examples import examples_for


def test_opening_matches_python(client, server):
    response = client.post("/api/opening", json={"model": "small"})
    assert response.status_code == 200, response.text
    found, expected = response.json(), find_opening(server.model)
    assert (found["text"], found["block"], found["head"]) == (expected.text, expected.block, expected.head)
    assert (found["role"], found["position"]) == (expected.role, expected.row)
    trace = client.post("/api/trace", json={"model": "small", "text": found["text"]})
    assert trace.status_code == 200


def test_examples_fit_the_tokenizer(client, server):
    found = client.post("/api/examples", json={"model": "small"}).json()
    model = server.model
    most = model.config.n_context - len(model.tokenizer.start_ids)
    assert found["texts"] == examples_for(model.tokenizer, most)
    for text in [*found["texts"], *(text for pair in found["pairs"] for text in pair)]:
        tokens = client.post("/api/tokens", json={"model": "small", "text": text})
        assert tokens.status_code == 200
    assert client.post("/api/examples", json={"model": "other"}).status_code == 404
