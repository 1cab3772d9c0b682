"""Many clients of `clearhead serve` at once, on this machine: what they were told, and what it cost.

Usage: python -m bench.load_test [--clients 200] [--seconds 60] [--short]. The server is a process of its own,
with a small random model; on Linux. Clients ask both routes, as streams and plainly, with many seeds and
settings; a tenth vanish midway. Who gets a 429 comes back after as long as it was told. Each text is
compared with what the same question got of the server alone. Prints one JSON line; asked for are no
`mismatches`, no `errors`, as much memory in the load's last quarter (`end_mb`) as while warming up before it
(`warm_mb`), the most of either, and under a second until slots are free: `next_seconds`, from when all who
are being written for vanish until one who waited has a first word; `freed_seconds`, from when everyone
vanishes until nothing is written and nobody waits; the longest of all rounds.
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
from typing import Any

import torch

from bench.clients import Clients, Question, Tally, make_questions
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

MODEL = "small"
SHAPE = {"n_context": 256, "n_block": 2, "n_head": 2, "d_model": 32}
SLOTS, QUEUE = 16, 128  # fewer than the clients: some are told to come back
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
QUESTIONS, ROUNDS = 64, 5
WRITTEN = 'clearhead_tokens_total{kind="written"}'
PATIENCE = 60  # seconds


def save_model(folder: Path) -> None:
    """One that can chat, with random weights."""
    made = Tokenizer.train("byte", [])
    tokenizer = Tokenizer(made._inner, {**made.config, "chat_template": TEMPLATE})
    torch.manual_seed(0)
    network = Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **SHAPE))
    LanguageModel(network, tokenizer).save(folder)


@dataclass(frozen=True)
class Server:
    """A server that runs: where, who may ask, and in which process."""

    url: str
    token: str
    pid: int
    slots: int

    @property
    def resident(self) -> float:
        """Megabytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    async def metric(self, clients: Clients, *beginnings: str) -> float:
        """The sum of the metrics that begin so."""
        told = (await clients.http.get("/metrics")).text
        return sum(float(line.split()[-1]) for line in told.splitlines() if line.startswith(beginnings))


@contextmanager
def serving(folder: Path, slots: int, queue: int) -> Iterator[Server]:
    """`clearhead serve` as a user runs it. What it says goes to a file beside the model."""
    said = folder.with_suffix(".log")
    options = ["--port", "0", "--device", "cpu", "--slots", str(slots), "--queue", str(queue)]
    command = [sys.executable, "-m", "clearhead", "serve", str(folder), *options]
    with said.open("wb") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            until = time.monotonic() + PATIENCE
            while "\nopen " not in said.read_text():
                assert process.poll() is None, said.read_text()
                assert time.monotonic() < until, "the server did not start"
                time.sleep(0.05)
            address = said.read_text().partition("\nopen ")[2].split()[0]
            url, _, token = address.partition("/?token=")
            yield Server(url, token, process.pid, slots)
        finally:
            process.terminate()
            process.wait(PATIENCE)
    assert "Traceback" not in said.read_text(), said.read_text()[-5000:]


async def wait_for(holds: Callable[[], Awaitable[bool]]) -> float:
    """Seconds until it holds."""
    begun = time.monotonic()
    while not await holds():
        assert time.monotonic() - begun < PATIENCE, "it never came"
        await asyncio.sleep(0.01)
    return time.monotonic() - begun


async def rest(server: Server, clients: Clients) -> float:
    async def rests() -> bool:
        return await server.metric(clients, "clearhead_running{", "clearhead_waiting{") == 0

    return await wait_for(rests)


async def vanish(server: Server, clients: Clients, questions: list[Question]) -> tuple[float, float]:
    """Everyone streams without end. Those who are written for vanish, and then everyone.

    Gives the seconds until the first of the others has a word, and until all slots are free.
    """
    begun: set[int] = set()

    async def listen(number: int) -> None:
        question = questions[number % len(questions)].endless()
        async with clients.stream(question, Tally()) as pieces:
            async for choice in pieces:
                if choice.get("text") or choice.get("delta", {}).get("content"):
                    begun.add(number)

    async def all_written_for() -> bool:
        return len(begun) >= server.slots

    async def one_written_for() -> bool:
        return bool(begun)

    listening = [asyncio.create_task(listen(number)) for number in range(clients.count)]
    await wait_for(all_written_for)
    for number in begun:
        listening[number].cancel()
    begun.clear()
    following = await wait_for(one_written_for)
    for task in listening:
        task.cancel()
    freed = await rest(server, clients)
    ended = await asyncio.gather(*listening, return_exceptions=True)
    for error in ended:
        assert isinstance(error, asyncio.CancelledError), error
    return following, freed


async def note_memory(server: Server, notes: list[float]) -> None:
    """Megabytes, ten times a second, until it is cancelled."""
    while True:
        notes.append(server.resident)
        await asyncio.sleep(0.1)


async def measure(server: Server, count: int, seconds: float, rounds: int = ROUNDS) -> dict[str, Any]:
    """The figures of a server under so many clients."""
    clients = Clients(server.url, server.token, count)
    questions = make_questions(MODEL, min(count, QUESTIONS))
    memory: list[float] = []
    async with clients.http:
        await clients.learn(questions)
        noting = asyncio.create_task(note_memory(server, memory))
        warming = await clients.stay(seconds / 4)
        warm = max(memory)
        memory.clear()
        written, begun = await server.metric(clients, WRITTEN), time.monotonic()
        tally = await clients.stay(seconds)
        took = time.monotonic() - begun
        await rest(server, clients)
        written = await server.metric(clients, WRITTEN) - written
        end = max(memory[-(len(memory) // 4) :])
        noting.cancel()
        leavings = [await vanish(server, clients, questions) for _ in range(rounds)]
    errors = warming.errors + tally.errors
    return {
        "clients": count,
        "seconds": round(took, 1),
        "done": tally.done,
        "refused": tally.refused,
        "vanished": tally.vanished,
        "mismatches": warming.mismatches + tally.mismatches,
        "errors": len(errors),
        "first_errors": errors[:3],
        "tokens_per_second": round(written / took),
        "warm_mb": round(warm, 1),
        "end_mb": round(end, 1),
        "next_seconds": round(max(following for following, _ in leavings), 3),
        "freed_seconds": round(max(freed for _, freed in leavings), 3),
    }


def main(count: int, seconds: float, short: bool) -> dict[str, Any]:
    slots, queue, rounds = (4, 12, 2) if short else (SLOTS, QUEUE, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / MODEL)
        with serving(Path(folder) / MODEL, slots, queue) as server:
            return {"bench": "load_test", **asyncio.run(measure(server, count, seconds, rounds))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    count, seconds = (20, 3) if given.short else (200, 60)
    print(json.dumps(main(given.clients or count, given.seconds or seconds, given.short)))
