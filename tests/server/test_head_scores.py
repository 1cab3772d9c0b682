"""The head-scoring route returns the library's scores, computed once per model."""

import threading

import pytest

from clearhead.labs import heads as lab
from clearhead.server import head_scores as route


def score(client, name="small"):
    return client.post("/api/heads", json={"model": name})


def test_scores_match_python(client, server):
    response = score(client)
    assert response.status_code == 200
    expected = lab.heads(server.model)
    scores = response.json()
    assert list(scores["kinds"]) == ["previous", "first", "repeated", "induction", "antecedent"]
    for kind, table in expected.kinds.items():
        for values, row in zip(scores["kinds"][kind], table.tolist(), strict=True):
            assert values == pytest.approx(row, abs=1e-6)
    assert scores["chance"] == pytest.approx(dict(expected.chance))


@pytest.fixture
def counted(monkeypatch):
    """Record the numbers of sequences and stories in each call; calls block until `go` is set."""
    calls, go = [], threading.Event()

    def count(model, sequences, stories, check):
        calls.append((sequences, stories))
        assert go.wait(60)
        return lab.heads(model, 1, 1, check)

    monkeypatch.setattr(route, "heads", count)
    return calls, go


def test_heads_are_scored_once_without_blocking_other_requests(registry_of, start, counted):
    calls, go = counted
    responses = []
    with start(registry=registry_of()) as server, server.client() as client:

        def ask():
            with server.client() as other:
                responses.append(score(other).json())

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        server.until(lambda: calls)
        assert client.post("/api/trace", json={"model": "small", "text": "a"}).status_code == 200
        # A client that disconnects does not affect the others.
        server.abandon("/api/heads", {"model": "small"}, once=lambda: True)
        go.set()
        for thread in threads:
            thread.join(60)
        assert score(client).json() == responses[0] == responses[1] == responses[2]
    assert calls == [(lab.REPEATED, lab.STORIES)]


def test_large_models_are_scored_on_fewer_texts(client, registry_of, start, counted, monkeypatch):
    calls, go = counted
    go.set()
    monkeypatch.setattr(route, "LARGE", 10)
    with start(registry=registry_of()) as server, server.client() as client:
        assert score(client).status_code == 200
    assert calls == [(2, 10)]


def test_models_that_cannot_be_scored_return_an_error(client, registry_of, start, make_small):
    assert score(client, "nothing").status_code == 404
    assert score(client, "broken").status_code == 503
    with start(registry=registry_of(short=make_small(n_context=4))) as server, server.client() as other:
        response = score(other, "short")
        assert response.status_code == 400
        assert "too short" in response.json()["error"]["message"]
        assert score(other, "short").status_code == 400  # failures are not cached


def test_antecedent_score_is_zero_for_a_short_context(registry_of, start, make_small):
    with start(registry=registry_of(short=make_small(n_context=8))) as server, server.client() as client:
        scores = score(client, "short").json()
    assert scores["kinds"]["antecedent"] == [[0.0, 0.0]]
    assert scores["chance"]["antecedent"] == 0


def test_scoring_can_be_canceled(model):
    read = []

    def check():
        read.append(None)
        if len(read) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.heads(model, 2, 5, check)
