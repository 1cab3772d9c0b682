"""Clients that misbehave: they stall, disconnect, or send garbage. Each counts how the server answered."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PATIENCE = 60  # seconds after which a server that neither answers nor closes the connection has failed
PAUSE = 0.2  # seconds between attempts of a client that is not kept waiting
FLOOD, CHUNK = 2**22, 2**16  # bytes; the first is more than the server accepts in a body

Attempt = Callable[["Connection", random.Random], Awaitable[None]]


@dataclass
class BadCounts:
    """How the server answered: the number of times by kind of client and status; `closed` means no answer."""

    answers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


@dataclass
class Connection:
    """A raw connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: str  # of an authenticated request, without its first line and its length
    model: str

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def request(self, body: bytes, path: str = "/v1/completions", length: int | None = None) -> bytes:
        size = len(body) if length is None else length
        return f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {size}\r\n\r\n".encode() + body

    def query(self, **more: object) -> bytes:
        body = {"model": self.model, "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}, **more}
        return self.request(json.dumps(body).encode())


async def stall_in_header(connection: Connection, rng: random.Random) -> None:
    await connection.send(b"POST /v1/completions HTTP/1.1\r\nHost:"[: rng.randint(1, 30)])


async def stall_in_body(connection: Connection, rng: random.Random) -> None:
    await connection.send(connection.request(b'{"model":', length=rng.randint(100, 1000)))


async def stop_reading(connection: Connection, rng: random.Random) -> None:
    """Ask for a long stream, leave it unread for a while, and close the connection."""
    await connection.send(connection.query(stream=True, n=3))
    await asyncio.sleep(rng.uniform(1, 5))
    raise ConnectionAbortedError


async def disconnect(connection: Connection, rng: random.Random) -> None:
    """Close the connection while the server generates, streams, or waits for a slot."""
    await connection.send(connection.query(stream=rng.random() < 0.7))
    await asyncio.sleep(rng.uniform(0, 1))
    raise ConnectionAbortedError


async def send_noise(connection: Connection, rng: random.Random) -> None:
    await connection.send(rng.randbytes(rng.randint(1, 2000)) + b"\r\n\r\n")


async def send_nonsense(connection: Connection, rng: random.Random) -> None:
    """Send a well-formed HTTP request with a body that is not a valid query."""
    body = rng.choice(
        [
            rng.randbytes(200),
            b"[" * 5000,
            b'{"model": 1e999, "prompt": NaN}',
            b'{"model": "small", "prompt": "a", "max_tokens": -1}',
            b'{"model": "small", "prompt": "\\ud800", "seed": 0}',
            b'{"model": "\\u001b[2J", "prompt": "a"}',
            b'{"model": "small", "prompt": "a", "regex": "(a{999}){999}"}',
            b'{"model": "small", "prompt": [99999999]}',
        ]
    )
    await connection.send(connection.request(body))


async def flood(connection: Connection, rng: random.Random) -> None:
    """Announce more than the server accepts in a body, or send it without announcing it."""
    if rng.random() < 0.5:
        await connection.send(connection.request(b"a" * CHUNK, length=FLOOD))
        return
    head = f"POST /v1/completions HTTP/1.1\r\n{connection.head}Transfer-Encoding: chunked\r\n\r\n"
    await connection.send(head.encode())
    with suppress(ConnectionError):  # the server may close the connection before it has everything
        for _ in range(FLOOD // CHUNK):
            await connection.send(f"{CHUNK:x}\r\n".encode() + b"a" * CHUNK + b"\r\n")


ATTEMPTS: tuple[Attempt, ...] = (
    stall_in_header,
    stall_in_body,
    stop_reading,
    disconnect,
    send_noise,
    send_nonsense,
    flood,
)


async def run_bad_clients(
    url: str, token: str, model: str, count: int, seconds: float, most: float = math.inf
) -> BadCounts:
    """Run this many misbehaving clients, cycling through the kinds, for some seconds or at `most` attempts each."""
    counts, until = BadCounts(), time.monotonic() + seconds
    address = urlsplit(url)
    head = f"Host: {address.netloc}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def misbehave(number: int) -> None:
        rng = random.Random(number)
        attempt = ATTEMPTS[number % len(ATTEMPTS)]
        made = 0
        while time.monotonic() < until and made < most:
            await try_once(attempt, rng)
            await asyncio.sleep(PAUSE)
            made += 1

    async def try_once(attempt: Attempt, rng: random.Random) -> None:
        name = attempt.__name__
        writer = None
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            connection = Connection(reader, writer, head, model)
            await attempt(connection, rng)
            left = max(0.1, min(PATIENCE, until - time.monotonic()))
            async with asyncio.timeout(left):
                line = await reader.readline()
            status = line.split()[1].decode() if line.startswith(b"HTTP/1.") else "closed"
            counts.answers[f"{name} {status}"] += 1
            if not (status == "closed" or status.startswith("4")):
                counts.errors.append(f"{name}: {line!r}")
        except ConnectionAbortedError:
            counts.answers[f"{name} aborted"] += 1
        except ConnectionError:
            counts.answers[f"{name} closed"] += 1
        except TimeoutError:
            if time.monotonic() < until:
                counts.errors.append(f"{name}: neither answered nor closed for {PATIENCE} s")
        finally:
            if writer is not None:
                writer.transport.abort()

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(misbehave(number))
    return counts
