"""Clients of a server: what they ask, what they get for it, and what of that was wrong."""

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
PLAIN, VANISHING = 0.3, 0.1  # of the requests
CHATS = 8  # one question in so many: each starts a process, for the model's template
WORDS = ("the", "chicken", "did", "not", "cross", "a", "road", "because", "it", "was", "too", "tired")

Texts = list[tuple[str, str]]  # of each choice its text, and why it ended


@dataclass(frozen=True)
class Question:
    """What is asked, and of which route. The same question has the same answer always: it has a seed."""

    route: str
    body: dict[str, Any]

    def endless(self) -> Question:
        """The same, to be left before its end."""
        never = {"logit_bias": {"256": -100}, "max_tokens": 4096}  # 256 ends a text of bytes
        kept = {name: value for name, value in self.body.items() if name not in ("stop", "regex", "n")}
        return Question(self.route, {**kept, **never})


def make_questions(model: str, count: int) -> list[Question]:
    """Both routes, with all the settings, and lengths of many kinds."""
    questions = []
    for seed in range(count):
        draw = random.Random(seed)
        words = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 12)))
        body = {"model": model, "seed": seed, "max_tokens": draw.randint(8, 40), **draw.choice(SETTINGS)}
        if seed % CHATS == 0:
            asked = {"messages": [{"role": "user", "content": words}]}
            questions.append(Question("/v1/chat/completions", {**body, **asked}))
        else:
            questions.append(Question("/v1/completions", {**body, "prompt": words}))
    return questions


@dataclass
class Tally:
    """What came of it all."""

    done: int = 0
    refused: int = 0  # with 429 and a time to come back
    vanished: int = 0
    mismatches: int = 0
    errors: list[str] = field(default_factory=list)


class Clients:
    """So many of them at once, each with a connection of its own, who know what they should be told."""

    def __init__(self, url: str, token: str, count: int) -> None:
        self.http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx.Limits(max_connections=count + 1, max_keepalive_connections=count + 1),
            timeout=120,
            trust_env=False,
        )
        self.count = count
        self.known: dict[int, Texts] = {}  # by seed

    async def learn(self, questions: Sequence[Question]) -> None:
        """Ask each question of the server while nobody else does."""
        self.questions = questions
        for question in questions:
            self.known[question.body["seed"]] = await self._ask_plainly(question, Tally())

    async def stay(self, seconds: float) -> Tally:
        """All of them ask, one question after the other."""
        tally, until = Tally(), time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(self.count):
                group.create_task(self._live(random.Random(number), until, tally))
        return tally

    async def _live(self, draw: random.Random, until: float, tally: Tally) -> None:
        while time.monotonic() < until:
            question, plainly = draw.choice(self.questions), draw.random() < PLAIN
            try:
                if draw.random() < VANISHING:
                    await self._vanish(question.endless(), plainly, draw.randint(1, 30), tally)
                else:
                    ask = self._ask_plainly if plainly else self._ask_streaming
                    texts = await ask(question, tally)
                    tally.done += 1
                    tally.mismatches += texts != self.known[question.body["seed"]]
            except (httpx.HTTPError, ValueError, LookupError, AssertionError) as error:
                tally.errors.append(f"{type(error).__name__}: {error}"[:300])

    async def _vanish(self, question: Question, plainly: bool, words: int, tally: Tally) -> None:
        """Go without a word, in the midst of a text or of waiting for it."""
        if plainly:
            with suppress(TimeoutError):
                async with asyncio.timeout(words / 30):
                    await self._ask_plainly(question, tally)
        else:
            async with self.stream(question, tally) as pieces:
                async for _ in pieces:
                    words -= 1
                    if words == 0:
                        break
        tally.vanished += 1

    async def _ask_plainly(self, question: Question, tally: Tally) -> Texts:
        while True:
            answer = await self.http.post(question.route, json=question.body)
            if not await self._must_come_back(answer, tally):
                break
        return [
            (choice["text"] if "text" in choice else choice["message"]["content"], choice["finish_reason"])
            for choice in answer.json()["choices"]
        ]

    async def _ask_streaming(self, question: Question, tally: Tally) -> Texts:
        texts = [""] * question.body.get("n", 1)
        ends = [""] * len(texts)
        async with self.stream(question, tally) as pieces:
            async for choice in pieces:
                number = choice["index"]
                assert not ends[number], f"more came after the end: {choice}"
                texts[number] += choice["text"] if "text" in choice else choice["delta"].get("content") or ""
                ends[number] = choice["finish_reason"] or ""
        return list(zip(texts, ends, strict=True))

    @asynccontextmanager
    async def stream(self, question: Question, tally: Tally) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The choices of each event, once the server takes it on."""
        body = {**question.body, "stream": True}
        while True:
            async with self.http.stream("POST", question.route, json=body) as answer:
                if await self._must_come_back(answer, tally):
                    continue
                yield _choices(answer)
                return

    async def _must_come_back(self, answer: httpx.Response, tally: Tally) -> bool:
        """Having waited for as long as was said; anything but 200 and 429 is an error."""
        if answer.status_code == 429:
            await answer.aread()
            tally.refused += 1
            await asyncio.sleep(float(answer.headers["Retry-After"]))
            return True
        if answer.status_code != 200:
            raise ValueError(f"{answer.status_code}: {(await answer.aread()).decode()}")
        return False


async def _choices(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    ended = False
    async for line in answer.aiter_lines():
        if line == "data: [DONE]":
            ended = True
        elif line:
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                yield choice
    assert ended, "the stream broke off"
