"""Concurrent clients that check every response from a server."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

SETTINGS: Sequence[dict[str, Any]] = (
    {"temperature": 0},
    {"temperature": 0.7, "top_p": 0.9},
    {"top_k": 20, "frequency_penalty": 0.5},
    {"min_p": 0.02, "repetition_penalty": 1.2},
    {"stop": ["a", "?!"]},
    {"n": 3},
    {"regex": "[a-z]{3,12}( [a-z]{1,9}){1,4}[.]"},
)
NON_STREAMING, DISCONNECTING = 0.3, 0.1  # fractions of the requests
CHAT_EVERY = 8  # requests; each chat starts a process for the model's template
WORDS = ("the", "chicken", "did", "not", "cross", "a", "road", "because", "it", "was", "too", "tired")

Choices = list[tuple[str, str]]  # the text and finish_reason of each choice


@dataclass(frozen=True)
class LoadRequest:
    """The route and body of a request. It has a seed, so its response is always the same."""

    route: str
    body: dict[str, Any]

    def endless(self) -> LoadRequest:
        """Return the same query without stop conditions, for clients that disconnect."""
        endless = {
            "logit_bias": {"256": -100},
            "max_tokens": 4096,
        }  # 256 is the end token of the byte tokenizer
        body = {name: value for name, value in self.body.items() if name not in ("stop", "regex", "n")}
        return LoadRequest(self.route, {**body, **endless})


def make_queries(model: str, count: int) -> list[LoadRequest]:
    """Return queries for both routes, with all settings and various lengths."""
    queries = []
    for seed in range(count):
        rng = random.Random(seed)
        prompt = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12)))
        body = {"model": model, "seed": seed, "max_tokens": rng.randint(8, 40), **rng.choice(SETTINGS)}
        if seed % CHAT_EVERY == 0:
            messages = {"messages": [{"role": "user", "content": prompt}]}
            queries.append(LoadRequest("/v1/chat/completions", {**body, **messages}))
        else:
            queries.append(LoadRequest("/v1/completions", {**body, "prompt": prompt}))
    return queries


@dataclass
class LoadCounts:
    """Counts of the outcomes."""

    completed: int = 0
    rejected: int = 0  # with 429 and Retry-After
    disconnected: int = 0
    mismatches: int = 0
    first_tokens: dict[int, list[float]] = field(default_factory=dict)  # seconds, by client, retries included
    errors: list[str] = field(default_factory=list)


class Clients:
    """Concurrent clients, each with its own connection, that know the expected response to every query."""

    def __init__(self, url: str, token: str, count: int) -> None:
        self.http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx.Limits(max_connections=count + 1, max_keepalive_connections=count + 1),
            timeout=120,
            trust_env=False,
        )
        self.count = count
        self.expected: dict[int, Choices] = {}  # by seed

    async def record(self, queries: Sequence[LoadRequest]) -> None:
        """Send each query alone and record its response."""
        self.queries = queries
        for query in queries:
            self.expected[query.body["seed"]] = await self._request(query, LoadCounts())

    async def run(self, seconds: float) -> LoadCounts:
        """Run all clients concurrently; each sends one query after another."""
        tally, until = LoadCounts(), time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(self.count):
                group.create_task(self._run_client(number, until, tally))
        return tally

    async def _run_client(self, number: int, until: float, tally: LoadCounts) -> None:
        rng = random.Random(number)
        while time.monotonic() < until:
            query, streaming = rng.choice(self.queries), rng.random() >= NON_STREAMING
            try:
                if rng.random() < DISCONNECTING:
                    await self._disconnect(query.endless(), streaming, rng.randint(1, 30), tally)
                else:
                    if streaming:
                        first_tokens = tally.first_tokens.setdefault(number, [])
                        choices = await self._request_streaming(query, tally, first_tokens)
                    else:
                        choices = await self._request(query, tally)
                    tally.completed += 1
                    tally.mismatches += choices != self.expected[query.body["seed"]]
            except (httpx.HTTPError, ValueError, LookupError, AssertionError) as error:
                tally.errors.append(f"{type(error).__name__}: {error}"[:300])

    async def _disconnect(self, query: LoadRequest, streaming: bool, tokens: int, tally: LoadCounts) -> None:
        """Disconnect in the middle of a stream, or while waiting for a response."""
        if streaming:
            async with self.stream(query, tally) as pieces:
                async for _ in pieces:
                    tokens -= 1
                    if tokens == 0:
                        break
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(tokens / 30):
                    await self._request(query, tally)
        tally.disconnected += 1

    async def _request(self, query: LoadRequest, tally: LoadCounts) -> Choices:
        while True:
            response = await self.http.post(query.route, json=query.body)
            if not await self._must_retry(response, tally):
                break
        return [
            (choice["text"] if "text" in choice else choice["message"]["content"], choice["finish_reason"])
            for choice in response.json()["choices"]
        ]

    async def _request_streaming(
        self, query: LoadRequest, tally: LoadCounts, first_tokens: list[float]
    ) -> Choices:
        start, waiting = time.monotonic(), True
        texts = [""] * query.body.get("n", 1)
        ends = [""] * len(texts)
        async with self.stream(query, tally) as pieces:
            async for choice in pieces:
                number = choice["index"]
                assert not ends[number], f"received data after the end: {choice}"
                text = choice["text"] if "text" in choice else choice["delta"].get("content") or ""
                if text and waiting:
                    waiting = False
                    first_tokens.append(time.monotonic() - start)
                texts[number] += text
                ends[number] = choice["finish_reason"] or ""
        return list(zip(texts, ends, strict=True))

    @asynccontextmanager
    async def stream(
        self, query: LoadRequest, tally: LoadCounts
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Yield the choices of each event, once the server accepts the request."""
        body = {**query.body, "stream": True}
        while True:
            async with self.http.stream("POST", query.route, json=body) as response:
                if await self._must_retry(response, tally):
                    continue
                yield _choices(response)
                return

    async def _must_retry(self, response: httpx.Response, tally: LoadCounts) -> bool:
        """Wait for Retry-After on 429 and return whether to retry; raise on anything but 200 and 429."""
        if response.status_code == 429:
            await response.aread()
            tally.rejected += 1
            await asyncio.sleep(float(response.headers["Retry-After"]))
            return True
        if response.status_code != 200:
            raise ValueError(f"{response.status_code}: {(await response.aread()).decode()}")
        return False


async def _choices(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    ended = False
    async for line in response.aiter_lines():
        if line == "data: [DONE]":
            ended = True
        elif line:
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                yield choice
    assert ended, "the stream ended without [DONE]"
