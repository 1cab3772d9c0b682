"""Many concurrent clients for a few seconds; `bench/load_test.py` runs longer."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from bench.bad_clients import ATTEMPTS, run_bad_clients
from bench.load_test import main
from clearhead.server.limits import Limits
from clearhead.text.tokenizer import Tokenizer
from tests import event_loop


@pytest.mark.clock
def test_many_concurrent_clients():
    """The time limits allow for busy machines; the benchmark's own limit is one second."""
    with ThreadPoolExecutor(1) as thread:  # Playwright's event loop may run in this thread
        figures = thread.submit(main, count=24, seconds=2, short=True).result()
    assert figures["errors"] == 0, figures
    assert figures["mismatches"] == 0
    assert figures["completed"] > 24
    assert figures["rejected"] > 0
    assert figures["disconnected"] > 0
    assert figures["next_seconds"] < 5
    assert figures["freed_seconds"] < 5
    assert figures["end_mb"] - figures["warm_mb"] < 50


def test_clients_that_stall_disconnect_or_send_garbage_are_refused(start):
    body = {"model": "small", "prompt": "a", "max_tokens": 8, "seed": 1}
    with start(Limits(body_timeout=0.5, header_timeout=0.5)) as server, server.client() as client:
        alone = client.post("/v1/completions", json=body).json()["choices"]
        bad = run_bad_clients(server.url, server.credentials.token, "small", len(ATTEMPTS), 300, most=2)
        counts = event_loop.run(bad)
        assert counts.errors == []
        assert {answer.split()[0] for answer in counts.answers} == {each.__name__ for each in ATTEMPTS}
        assert counts.answers["stall_in_body 408"] == 2
        server.until(server.is_idle)
        assert client.post("/v1/completions", json=body).json()["choices"] == alone


@pytest.fixture
def slow_registry(registry_of):
    """A registry whose model has a chat template that never finishes rendering."""
    registry = registry_of(slots=1, queue=1)
    model = registry.model("small")
    slow = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    model.tokenizer = Tokenizer(model.tokenizer._inner, {**model.tokenizer.config, "chat_template": slow})
    return registry


CHAT = {"model": "small", "messages": [{"role": "user", "content": "a"}]}


def test_slow_chat_templates_do_not_block_other_requests(start, slow_registry):
    """Send more chat requests than the server has threads."""

    async def ask(server):
        headers = {"Authorization": f"Bearer {server.credentials.token}"}
        async with httpx.AsyncClient(
            base_url=server.url, headers=headers, trust_env=False, timeout=120
        ) as client:
            chats = [asyncio.create_task(client.post("/v1/chat/completions", json=CHAT)) for _ in range(60)]
            await asyncio.sleep(0.5)
            assert (await client.get("/healthz")).text == "ok\n"
            assert 'clearhead_running{model="small"} 0.0' in (await client.get("/metrics")).text
            body = {"model": "small", "prompt": "a", "max_tokens": 2}
            assert (await client.post("/v1/completions", json=body)).status_code == 200
            assert not any(each.done() for each in chats[40:])
            for each in chats:
                each.cancel()
            await asyncio.gather(*chats, return_exceptions=True)

    with start(registry=slow_registry) as server:
        event_loop.run(ask(server))


def test_full_queue_is_checked_before_rendering_the_template(start, slow_registry):
    with start(registry=slow_registry) as server, server.client() as client:
        request = server.model.request("a", 4096, logit_bias={server.model.tokenizer.end_id: -100})
        handles = [server.engine.submit(request)]
        server.until(lambda: server.engine.running == 1 and server.engine.waiting == 0)
        handles.append(server.engine.submit(request))
        rejected = client.post("/v1/chat/completions", json=CHAT)
        for handle in handles:
            handle.cancel()
        assert rejected.status_code == 429
        assert rejected.headers["Retry-After"] == "1"
        server.until(server.is_idle)
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 400  # the template times out
