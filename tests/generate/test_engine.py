"""The engine: many requests from many threads, each producing the text it would produce alone."""

import asyncio
import gc
import random
import subprocess
import threading
import time
import weakref

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.engine import Busy, Engine
from clearhead.generate.request import Event, GenerationRequest
from clearhead.generate.sampling import Sampling
from clearhead.model.kv_cache import KVCache
from tests import event_loop

SLOTS = 8


class Recorder:
    """Samples as usual, and records the exact bits of every row of logits sampled from."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], list[bytes]] = {}

    def __call__(self, request: GenerationRequest, number: int, draw):
        rows = self.rows.setdefault((request.seed, number), [])

        def noting(logits):
            rows.append(logits.numpy().tobytes())
            return draw(logits)

        return noting


def some_request(chance: random.Random, seed: int) -> GenerationRequest:
    sampling = chance.choice([Sampling(0), Sampling(), Sampling(1.3, top_p=0.9, repetition_penalty=1.2)])
    ids = tuple(chance.choices(range(256), k=chance.choice([1, 3, 30, 63, 64, 65, 100, 140])))
    stops = chance.choice([(), (), ("a", "zz")])
    return GenerationRequest(
        ids, chance.randint(1, 24), sampling, seed, stops, samples=chance.choice([1, 1, 1, 2, 5])
    )


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("gpt2", {"d_model": 40}),
        ("local and global, like Gemma", {"n_kv_head": 2}),
        ("capped, like Gemma 2", {}),
    ],
)
def test_concurrent_requests_match_single_requests_bit_for_bit(make, tokenizer, family, sizes):
    network = make(family, n_context=96, **sizes)
    chance = random.Random(5)
    requests = [some_request(chance, seed) for seed in range(12)]
    ended_early = {seed: chance.randint(1, 10) for seed in chance.sample(range(12), 4)}
    together = Recorder()
    with Engine(network, tokenizer, SLOTS, queue=100, wrap_sampler=together) as engine:
        handles = []
        for request in requests:
            count = ended_early.get(request.seed)

            def listen(event: Event, seed=request.seed, count=count) -> None:
                if count is not None and len(handles) > seed and len(handles[seed].events) >= count:
                    handles[seed].cancel()

            handles.append(engine.submit(request, listen))
            time.sleep(chance.choice([0, 0, 0.002, 0.01]))
        texts = [handle.texts() for handle in handles]
    finishes = [event.finish_reason for handle in handles for event in handle if event.finish_reason]
    assert "length" in finishes
    assert "cancelled" in finishes
    assert "error" not in finishes
    alone = Recorder()
    with Engine(network, tokenizer, SLOTS, wrap_sampler=alone) as engine:
        expected = [engine.submit(request).texts() for request in requests]
    for (seed, sample), rows in alone.rows.items():
        made = together.rows.get((seed, sample), [])
        assert made == rows[: len(made)]
        if seed not in ended_early:
            assert len(made) == len(rows)
            assert texts[seed] == expected[seed]


@pytest.fixture
def engine(make, tokenizer):
    made = Engine(make(), tokenizer, slots=2, queue=3)
    yield made
    made.close(cancel=True)  # a failed test may leave endless requests running


def endless(seed: int = 0, **settings) -> GenerationRequest:
    """A request that runs until it is stopped: the end token is never the most likely."""
    return GenerationRequest((65,), tokens=10**9, sampling=Sampling(temperature=0), seed=seed, **settings)


def wait_until(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_full_queue_raises_busy_and_accepts_requests_again_later(engine):
    running = [engine.submit(endless()) for _ in range(2)]
    wait_until(lambda: engine.running == 2 and engine.waiting == 0)
    waiting = [engine.submit(endless()) for _ in range(3)]
    with pytest.raises(Busy, match="3 requests are already waiting"):
        engine.submit(endless())
    running[0].cancel()
    wait_until(lambda: engine.waiting == 2)
    waiting.append(engine.submit(endless()))
    for handle in (*running, *waiting):
        handle.cancel()
    for handle in (*running, *waiting):
        assert list(handle)[-1].finish_reason == "cancelled"
    wait_until(lambda: engine.running == engine.waiting == 0)


def test_cancel_frees_the_slot(engine):
    first, second = engine.submit(endless()), engine.submit(endless())
    wait_until(lambda: engine.running == 2)
    third = engine.submit(GenerationRequest((66,), tokens=3))
    time.sleep(0.05)
    assert not third.events
    second.cancel()
    third.texts()
    assert third.done
    assert not first.done
    first.cancel()
    assert [event.finish_reason for event in first][-1] == "cancelled"


def test_timeout_applies_to_running_and_waiting_requests(engine, monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    running = [engine.submit(endless(seconds=3)) for _ in range(2)]
    waiting = engine.submit(endless(seconds=1))
    now = 2.0
    assert list(waiting) == [Event(0, finish_reason="time")]
    assert not any(handle.done for handle in running)
    now = 4.0
    assert [list(handle)[-1].finish_reason for handle in running] == ["time"] * 2


def test_close_finishes_running_and_waiting_requests(make, tokenizer):
    engine = Engine(make(), tokenizer, slots=2)
    handles = [engine.submit(GenerationRequest((65,), tokens=20)) for _ in range(5)]
    engine.close()
    assert all(handle.done for handle in handles)
    assert {event.finish_reason for handle in handles for event in handle} <= {None, "stop", "length"}
    with pytest.raises(Busy, match="closed"):
        engine.submit(GenerationRequest((65,)))
    engine.close()  # again


def test_close_with_cancel_stops_all_requests(make, tokenizer):
    engine = Engine(make(), tokenizer, slots=2)
    handles = [engine.submit(endless()) for _ in range(5)]
    engine.close(cancel=True)
    assert [handle.events[-1].finish_reason for handle in handles] == ["cancelled"] * 5


def test_exception_in_the_context_manager_cancels_requests(make, tokenizer):
    handles = []

    def fail() -> None:
        with Engine(make(), tokenizer, slots=2) as engine:
            handles.append(engine.submit(endless()))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert handles[0].events[-1].finish_reason == "cancelled"


def test_process_exits_even_if_the_engine_is_not_closed(forked):
    program = (
        "import torch\n"
        "from clearhead.generate.engine import Engine\n"
        "from clearhead.generate.request import GenerationRequest\n"
        "from clearhead.model.config import preset\n"
        "from clearhead.model.transformer import Transformer\n"
        "from clearhead.text.tokenizer import Tokenizer\n"
        "sizes = dict(n_vocab=257, n_context=64, n_block=1, n_head=1, d_model=32)\n"
        "engine = Engine(Transformer(preset('modern', **sizes)).eval(), Tokenizer.train('byte', []), 2)\n"
        "engine.submit(GenerationRequest((65,), tokens=10**9))\n"
        "print('bye')\n"
    )
    done = subprocess.run([*forked, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_internal_errors_reach_waiting_callers(engine, monkeypatch):
    monkeypatch.setattr(engine._scheduler, "step", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.submit(GenerationRequest((65,))).texts()
    monkeypatch.undo()
    assert len(engine.submit(GenerationRequest((65,), tokens=3)).texts()) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_dead_engine_thread_raises_instead_of_blocking_callers(engine):
    def leave(event: Event) -> None:
        raise SystemExit

    waiting = engine.submit(endless())
    with pytest.raises(RuntimeError, match="has failed"):
        engine.submit(GenerationRequest((65,)), leave).texts()
    with pytest.raises(RuntimeError, match="has failed"):
        waiting.texts()
    with pytest.raises(Busy, match="closed"):
        engine.submit(GenerationRequest((65,)))


def test_invalid_ids_are_rejected_on_submit(engine):
    with pytest.raises(UserError, match="id 9999 does not exist"):
        engine.submit(GenerationRequest((9999,)))


def test_non_requests_are_rejected_on_submit(engine):
    with pytest.raises(UserError, match=r"request has type str: expected the result of model\.request"):
        engine.submit("x")


def test_many_threads_can_submit_and_wait(engine):
    found = {}

    def work(seed: int) -> None:
        while True:
            try:
                found[seed] = engine.submit(GenerationRequest((65,), tokens=8, seed=seed % 3)).texts()
                return
            except Busy:
                time.sleep(0.01)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert all(found[seed] == found[seed % 3] for seed in found)


def test_events_can_be_forwarded_to_asyncio(engine):
    async def collect() -> list[Event]:
        loop, events = asyncio.get_running_loop(), asyncio.Queue()
        handle = engine.submit(
            GenerationRequest((65,), tokens=8, samples=2),
            lambda event: loop.call_soon_threadsafe(events.put_nowait, event),
        )
        seen = []
        while not (handle.done and len(seen) == len(handle.events)):
            seen.append(await asyncio.wait_for(events.get(), 60))
        assert seen == handle.events
        return seen

    events = event_loop.run(collect())
    assert {event.sample for event in events if event.finish_reason} == {0, 1}


def test_events_can_be_iterated_twice(engine):
    handle = engine.submit(GenerationRequest((65,), tokens=8))
    assert list(handle) == list(handle) == handle.events


def test_two_torch_threads_give_the_same_result(make, tokenizer):
    """More threads may split rows differently, so each engine measures anew which widths are exact."""
    network, request = make(d_model=128, n_block=1), GenerationRequest((65, 66), tokens=12, seed=1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        alone, together = Recorder(), Recorder()
        with Engine(network, tokenizer, SLOTS, wrap_sampler=alone) as engine:
            engine.submit(request).texts()
        with Engine(network, tokenizer, SLOTS, wrap_sampler=together) as engine:
            handles = [engine.submit(some_request(random.Random(i), seed=2 + i)) for i in range(6)]
            engine.submit(request).texts()
            for handle in handles:
                handle.cancel()
    finally:
        torch.set_num_threads(before)
    assert together.rows[1, 0] == alone.rows[1, 0]


def test_finished_requests_release_their_memory(make, tokenizer):
    """They release it immediately, not at the next garbage collection, so that a server's memory does not grow."""

    class Listener:
        def __init__(self, engine, request):
            self.handle = engine.submit(request, self.listen)

        def listen(self, event):
            pass

    def caches():
        return sum(type(each) is KVCache for each in gc.get_objects())

    gc.collect()
    gc.disable()
    before = caches()
    try:
        with Engine(make("gpt2", n_context=32), tokenizer, SLOTS) as engine:
            # The first request fills its context and is prefilled repeatedly; the second is stopped early.
            listeners = [
                Listener(engine, GenerationRequest((65,) * 20, 40)),
                Listener(engine, GenerationRequest((65,), 4096)),
            ]
            listeners[0].handle.texts()
            listeners[1].handle.cancel()
            listeners[1].handle.texts()
            held = [weakref.ref(listener) for listener in listeners]
            del listeners
        assert [each() for each in held] == [None, None]
        assert caches() == before
    finally:
        gc.enable()
