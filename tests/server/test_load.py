"""Many clients at once, for a few seconds: `bench/load_test.py` is the same for longer."""

import asyncio

import httpx
import pytest

from bench.load_test import main
from clearhead.text.tokenizer import Tokenizer
from tests import event_loop


@pytest.mark.clock
def test_many_clients_at_once():
    """The limits of time are wide, for machines that do other work; the measurement asks for a second."""
    figures = main(count=24, seconds=2, short=True)
    assert figures["errors"] == 0, figures
    assert figures["mismatches"] == 0
    assert figures["completed"] > 24
    assert figures["rejected"] > 0
    assert figures["disconnected"] > 0
    assert figures["next_seconds"] < 5
    assert figures["freed_seconds"] < 5
    assert figures["end_mb"] - figures["warm_mb"] < 50


@pytest.fixture
def slow_registry(registry_of):
    """One whose model has a chat template that goes on until it is stopped."""
    registry = registry_of(slots=1, queue=1)
    model = registry.model("small")
    slow = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    model.tokenizer = Tokenizer(model.tokenizer._inner, {**model.tokenizer.config, "chat_template": slow})
    return registry


CHAT = {"model": "small", "messages": [{"role": "user", "content": "a"}]}


def test_nobody_waits_behind_chat_templates(start, slow_registry):
    """More of them than the server has threads."""

    async def ask(server):
        headers = {"Authorization": f"Bearer {server.credentials.token}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as client:
            chats = [asyncio.create_task(client.post("/v1/chat/completions", json=CHAT)) for _ in range(60)]
            await asyncio.sleep(0.5)
            assert (await client.get("/healthz")).text == "ok\n"
            assert 'clearhead_running{model="small"} 0.0' in (await client.get("/metrics")).text
            body = {"model": "small", "prompt": "a", "max_tokens": 2}
            assert (await client.post("/v1/completions", json=body)).status_code == 200
            assert not any(chat.done() for chat in chats[40:])
            for chat in chats:
                chat.cancel()
            await asyncio.gather(*chats, return_exceptions=True)

    with start(registry=slow_registry) as server:
        event_loop.run(ask(server))


def test_a_chat_that_cannot_be_taken_is_told_before_its_template_is_filled_in(start, slow_registry):
    with start(registry=slow_registry) as server, server.client() as client:
        request = server.model.request("a", 4096, logit_bias={server.model.tokenizer.end_id: -100})
        handles = [server.engine.submit(request)]
        server.until(lambda: server.engine.running == 1)
        handles.append(server.engine.submit(request))
        refused = client.post("/v1/chat/completions", json=CHAT)
        for handle in handles:
            handle.cancel()
        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "1"
        server.until(server.rests)
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 400  # it takes too long
