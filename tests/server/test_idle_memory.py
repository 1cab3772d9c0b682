"""Free memory is returned to the system once after each burst of requests, when none is running."""

import gc
import weakref
from types import SimpleNamespace

import pytest

from clearhead.server import process
from clearhead.server.idle_memory import return_memory
from tests import event_loop


@pytest.fixture
def returns(monkeypatch):
    """Record when memory is returned."""
    calls = []
    monkeypatch.setattr(process, "return_memory", lambda: calls.append(None))
    return calls


def test_memory_is_returned_once_and_only_when_no_request_is_running(returns):
    server = process.Server.__new__(process.Server)
    server._tidy_after, server.server_state = 0, SimpleNamespace(total_requests=0, tasks=set())

    def count():
        event_loop.run(server.return_memory_if_idle())
        return len(returns)

    assert count() == 0
    server.server_state.total_requests, server.server_state.tasks = 3, {"a request"}
    assert count() == 0
    server.server_state.tasks = set()
    assert count() == count() == 1
    server.server_state.total_requests = 4
    assert count() == 2


def test_server_returns_memory_after_a_request(returns, monkeypatch, registry_of, running_server):
    monkeypatch.setattr(process, "MEMORY_INTERVAL", 0)
    with running_server(registry_of()) as server, server.client() as client:
        assert client.post("/api/tokens", json={"model": "small", "text": "a"}).status_code == 200
        server.until(lambda: returns)


def test_returning_memory_collects_cycles():
    class Node:
        pass

    node = Node()
    node.itself, gone = node, weakref.ref(node)
    gc.disable()
    try:
        del node
        assert gone() is not None
        return_memory()
    finally:
        gc.enable()
    assert gone() is None
