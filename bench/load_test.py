"""Load test of `clearhead serve` with many concurrent clients on this machine. Linux only.

Usage: python -m bench.load_test [--clients 200] [--bad-clients 50] [--seconds 600] [--short]. The server is a
separate process with a small random model. Clients use both routes, streaming and not, with many seeds and
settings; a tenth of the requests are abandoned midway. After a 429, a client retries after the time given in
Retry-After. Each response is compared with that of the same query sent alone. Meanwhile, bad clients stall,
disconnect and send garbage (`bench.bad_clients`).

Prints one JSON line. The targets are
- no `mismatches`, and no `errors`: any status except 200 and 429 for a good client, or except 4xx for a bad one;
- memory at rest after the load (`after_mb`) within 5% of that after the warmup (`before_mb`), and its peak in the
  last quarter of the load (`end_mb`) no higher than during the warmup (`warm_mb`);
- first tokens that come equally soon for all clients: `slowest_client` is the longest mean time to the first token
  of a client, retries included, divided by the mean of all clients;
- slots freed within a second, in the slowest round: `next_seconds` from when all active clients disconnect until a
  waiting one receives its first token, and `freed_seconds` from when all clients disconnect until nothing runs or
  waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import torch

from bench.bad_clients import BadCounts, run_bad_clients
from bench.clients import Clients, LoadCounts, LoadRequest, make_queries
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.server.process import MEMORY_INTERVAL
from clearhead.text.tokenizer import Tokenizer

MODEL = "small"
SHAPE = {"n_context": 256, "n_block": 2, "n_head": 2, "d_model": 32}
SLOTS, QUEUE = 16, 128  # fewer than the clients, so that some receive a 429
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
QUERIES, ROUNDS = 64, 5
REST = (
    3 * MEMORY_INTERVAL
)  # seconds, for the server to close connections that clients have dropped, and to return free memory
TOKENS = 'clearhead_tokens_total{kind="completion"}'
TIMEOUT = 300  # seconds


def save_model(folder: Path) -> None:
    """Save a model with random weights and a chat template."""
    trained = Tokenizer.train("byte", [])
    tokenizer = Tokenizer(trained._inner, {**trained.config, "chat_template": TEMPLATE})
    torch.manual_seed(0)
    network = Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **SHAPE))
    LanguageModel(network, tokenizer).save(folder)


@dataclass(frozen=True)
class ServerProcess:
    """A running server."""

    url: str
    token: str
    pid: int
    slots: int

    @property
    def resident_mb(self) -> float:
        """Return the resident memory in megabytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    async def metric(self, clients: Clients, *prefixes: str) -> float:
        """Return the sum of the metrics that start with one of the prefixes."""
        metrics = (await clients.http.get("/metrics")).text
        return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(prefixes))


@contextmanager
def serving(folder: Path, slots: int, queue: int) -> Iterator[ServerProcess]:
    """Run `clearhead serve`, logging to a file next to the model."""
    log = folder.with_suffix(".log")
    options = ["--port", "0", "--device", "cpu", "--slots", str(slots), "--queue", str(queue)]
    command = [sys.executable, "-m", "clearhead", "serve", str(folder), *options]
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            deadline = time.monotonic() + TIMEOUT
            while "\nopen " not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
            address = log.read_text().partition("\nopen ")[2].split()[0]
            url, _, token = address.partition("/?token=")
            yield ServerProcess(url, token, process.pid, slots)
        finally:
            process.terminate()
            process.wait(TIMEOUT)
    assert "Traceback" not in log.read_text(), log.read_text()[-5000:]


async def wait_for(condition: Callable[[], Awaitable[bool]]) -> float:
    """Wait until the condition holds. Return the seconds waited."""
    start = time.monotonic()
    while not await condition():
        assert time.monotonic() - start < TIMEOUT, "timed out"
        await asyncio.sleep(0.01)
    return time.monotonic() - start


async def wait_until_idle(server: ServerProcess, clients: Clients) -> float:
    async def idle() -> bool:
        return await server.metric(clients, "clearhead_running{", "clearhead_waiting{") == 0

    return await wait_for(idle)


async def disconnect(
    server: ServerProcess, clients: Clients, queries: list[LoadRequest]
) -> tuple[float, float]:
    """Stream endless queries, disconnect the clients that receive tokens, and then all others.

    Returns the seconds until another client receives its first token, and until all slots are free.
    """
    active: set[int] = set()

    async def listen(number: int) -> None:
        query = queries[number % len(queries)].endless()
        async with clients.stream(query, LoadCounts()) as pieces:
            async for choice in pieces:
                if choice.get("text") or choice.get("delta", {}).get("content"):
                    active.add(number)

    async def all_slots_active() -> bool:
        return len(active) >= server.slots

    async def any_active() -> bool:
        return bool(active)

    listening = [asyncio.create_task(listen(number)) for number in range(clients.count)]
    await wait_for(all_slots_active)
    for number in active:
        listening[number].cancel()
    active.clear()
    following = await wait_for(any_active)
    for task in listening:
        task.cancel()
    freed = await wait_until_idle(server, clients)
    ended = await asyncio.gather(*listening, return_exceptions=True)
    for error in ended:
        assert isinstance(error, asyncio.CancelledError), error
    return following, freed


async def sample_memory(server: ServerProcess, samples: list[float]) -> None:
    """Append the resident memory in megabytes ten times per second, until canceled."""
    while True:
        samples.append(server.resident_mb)
        await asyncio.sleep(0.1)


async def measure(
    server: ServerProcess, count: int, bad: int, seconds: float, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Run the load test and return its figures."""
    clients = Clients(server.url, server.token, count)
    queries = make_queries(MODEL, min(count, QUERIES))
    memory: list[float] = []

    async def load(seconds: float) -> tuple[LoadCounts, BadCounts]:
        misbehaving = run_bad_clients(server.url, server.token, MODEL, bad, seconds)
        tally, answers = await asyncio.gather(clients.run(seconds), misbehaving)
        return tally, answers

    async def resting_mb() -> float:
        await wait_until_idle(server, clients)
        await asyncio.sleep(REST)
        return server.resident_mb

    async with clients.http:
        await clients.record(queries)
        sampling = asyncio.create_task(sample_memory(server, memory))
        warmup, warmup_bad = await load(seconds / 4)
        warm = max(memory)
        before = await resting_mb()
        memory.clear()
        tokens, start = await server.metric(clients, TOKENS), time.monotonic()
        tally, tally_bad = await load(seconds)
        elapsed = time.monotonic() - start
        end = max(memory[-(len(memory) // 4) :])
        after = await resting_mb()
        tokens = await server.metric(clients, TOKENS) - tokens
        sampling.cancel()
        disconnections = [await disconnect(server, clients, queries) for _ in range(rounds)]
    errors = warmup.errors + tally.errors + warmup_bad.errors + tally_bad.errors
    return {
        "clients": count,
        "bad_clients": bad,
        "seconds": round(elapsed, 1),
        "completed": tally.completed,
        "rejected": tally.rejected,
        "disconnected": tally.disconnected,
        "mismatches": warmup.mismatches + tally.mismatches,
        "errors": len(errors),
        "first_errors": errors[:3],
        "bad_answers": dict(sorted(tally_bad.answers.items())),
        "tokens_per_second": round(tokens / elapsed),
        "warm_mb": round(warm, 1),
        "end_mb": round(end, 1),
        "before_mb": round(before, 1),
        "after_mb": round(after, 1),
        **describe_first_tokens(tally),
        "next_seconds": round(max(following for following, _ in disconnections), 3),
        "freed_seconds": round(max(freed for _, freed in disconnections), 3),
    }


def describe_first_tokens(tally: LoadCounts) -> dict[str, float]:
    """Return how long clients waited for the first token of a stream, and how unequal the waits were."""
    waits = sorted(wait for each in tally.first_tokens.values() for wait in each)
    of_clients = [mean(each) for each in tally.first_tokens.values() if each]
    if len(waits) < 2:
        return {}
    percentiles = quantiles(waits, n=100, method="inclusive")
    return {
        "first_token_p50": round(percentiles[49], 2),
        "first_token_p99": round(percentiles[98], 2),
        "first_token_max": round(waits[-1], 2),
        "slowest_client": round(max(of_clients) / mean(of_clients), 2),
    }


def main(count: int, seconds: float, short: bool, bad: int = 0) -> dict[str, Any]:
    slots, queue, rounds = (4, 12, 2) if short else (SLOTS, QUEUE, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / MODEL)
        with serving(Path(folder) / MODEL, slots, queue) as server:
            return {"bench": "load_test", **asyncio.run(measure(server, count, bad, seconds, rounds))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int)
    parser.add_argument("--bad-clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    count, bad, seconds = (20, 7, 3) if args.short else (200, 50, 600)
    bad = bad if args.bad_clients is None else args.bad_clients
    print(json.dumps(main(args.clients or count, args.seconds or seconds, args.short, bad)))
