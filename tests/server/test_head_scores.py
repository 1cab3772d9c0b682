"""What heads do, over the wire: the library's own numbers, found once."""

import threading

import pytest

from clearhead.labs import heads as lab
from clearhead.server import head_scores as route


def score(client, name="small"):
    return client.post("/api/heads", json={"model": name})


def test_the_scores_are_those_of_the_library(client, server):
    answer = score(client)
    assert answer.status_code == 200
    expected = lab.heads(server.model)
    told = answer.json()
    assert list(told["kinds"]) == ["previous", "first", "repeated", "induction", "antecedent"]
    for kind, table in expected.kinds.items():
        for given, row in zip(told["kinds"][kind], table.tolist(), strict=True):
            assert given == pytest.approx(row, abs=1e-6)
    assert told["chance"] == pytest.approx(dict(expected.chance))


@pytest.fixture
def counted(monkeypatch):
    """How often heads are scored, and on how many texts; not before it is let."""
    calls, go = [], threading.Event()

    def count(model, sequences, stories, check):
        calls.append((sequences, stories))
        assert go.wait(60)
        return lab.heads(model, 1, 1, check)

    monkeypatch.setattr(route, "heads", count)
    return calls, go


def test_found_once_while_others_are_served(registry_of, start, counted):
    calls, go = counted
    answers = []
    with start(registry=registry_of()) as server, server.client() as client:

        def ask():
            with server.client() as other:
                answers.append(score(other).json())

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        server.until(lambda: calls)
        assert client.post("/api/trace", json={"model": "small", "text": "a"}).status_code == 200
        # One who leaves takes nothing from the others.
        server.abandon("/api/heads", {"model": "small"}, once=lambda: True)
        go.set()
        for thread in threads:
            thread.join(60)
        assert score(client).json() == answers[0] == answers[1] == answers[2]
    assert calls == [(lab.REPEATED, lab.STORIES)]


def test_large_models_read_less(client, registry_of, start, counted, monkeypatch):
    calls, go = counted
    go.set()
    monkeypatch.setattr(route, "LARGE", 10)
    with start(registry=registry_of()) as server, server.client() as client:
        assert score(client).status_code == 200
    assert calls == [(2, 10)]


def test_what_cannot_be_scored_is_refused(client, registry_of, start, make_small):
    assert score(client, "nothing").status_code == 404
    assert score(client, "broken").status_code == 503
    with start(registry=registry_of(short=make_small(n_context=4))) as server, server.client() as other:
        answer = score(other, "short")
        assert answer.status_code == 400
        assert "too short" in answer.json()["error"]["message"]
        assert score(other, "short").status_code == 400  # and again


def test_a_context_without_a_pronoun(registry_of, start, make_small):
    with start(registry=registry_of(short=make_small(n_context=8))) as server, server.client() as client:
        told = score(client, "short").json()
    assert told["kinds"]["antecedent"] == [[0.0, 0.0]]
    assert told["chance"]["antecedent"] == 0


def test_it_ends_when_it_is_told_to(model):
    read = []

    def check():
        read.append(None)
        if len(read) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.heads(model, 2, 5, check)
