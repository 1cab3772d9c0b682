"""What the page will ask of a model, asked beforehand: a saved file has the answers in it.

A question is kept with all that the page says in it but the model and the text, which are known.
"""

from __future__ import annotations

import heapq
import json
from itertools import count
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.inspect.trace import Trace
from clearhead.server.in_process import InProcessClient, InProcessResponse

# As the page asks.
TOGETHER = 5  # blocks that are compared at a time
SOURCES = 24  # heads whose tokens are told, and tokens that are drawn at most
PAIRS = 8  # of parts that made a head look somewhere
NEIGHBOURS = 10

WAYS = 12  # back from the likeliest word, the strongest ones
ARROWS = 8  # of a head: where the last tokens look
NEAR = 32  # tokens, the last ones, whose neighbours are kept
DIGITS = 6  # of a number

Question = dict[str, Any]  # a model and a text
Exchange = dict[str, Any]


class ResponseRecorder:
    """Asks about one text, and keeps what was said."""

    def __init__(self, routes: InProcessClient, model: str, trace: Trace) -> None:
        self.routes, self.trace = routes, trace
        self.question: Question = {"model": model, "text": trace.ids[0].tolist()}
        self.kept: list[Exchange] = []

    def ask(self, path: str, **more: Any) -> InProcessResponse:
        answer = self.routes.ask("POST", path, json.dumps({**self.question, **more}))
        if answer.status != 200:
            raise UserError(json.loads(answer.body)["error"]["message"])
        return answer

    def read(self, path: str, **more: Any) -> Any:
        return json.loads(self.ask(path, **more).body)

    def keep(self, path: str, asked: dict[str, Any], answer: Any) -> None:
        self.kept.append({"path": path, "asked": asked, "answer": shorten(answer)})

    def keep_ways(self, words: list[int]) -> None:
        """What wrote each of these words; of the first, the strongest ways back, however far they go."""
        onward = [self._follow(word, []) for word in words]
        order = count()  # where two are as strong
        ways = [(-size, next(order), [hop]) for size, hop in onward[0]]
        heapq.heapify(ways)
        for _ in range(WAYS):
            if not ways:
                break
            _, _, way = heapq.heappop(ways)
            for size, hop in self._follow(words[0], way):
                heapq.heappush(ways, (-size, next(order), [*way, hop]))

    def _follow(self, word: int, way: list[dict[str, int]]) -> list[tuple[float, dict[str, int]]]:
        """Keep what came this way; where it goes on, and how strongly."""
        asked = {"word": word, "position": -1, "through": way, "heads": SOURCES}
        answer = self.read("/api/attribute", **asked)
        for each in answer["heads"]:
            each["values"] = keep_largest(each["values"])
        self.keep("/api/attribute", asked, answer)
        return [
            (abs(value), {"block": each["block"], "head": each["head"], "source": source})
            for each in answer["heads"]
            for source, value in enumerate(each["values"])
            if value
        ]

    def keep_arrows(self, block: int, head: int) -> None:
        """Why a head looks from each of the last tokens to the one it looks at most."""
        weights = self.trace.read(f"block.{block}.head.{head}.weights").float().cpu().numpy()
        for row in range(max(0, len(weights) - ARROWS), len(weights)):
            looked_at = int(np.argmax(weights[row]))
            asked = {"block": block, "head": head, "looking": row, "looked_at": looked_at, "count": PAIRS}
            self.keep("/api/why", asked, self.read("/api/why", **asked))

    def keep_neighbours(self, stages: list[str]) -> None:
        for row in range(max(0, len(self.trace) - NEAR), len(self.trace)):
            for stage in stages:
                asked = {"position": row, "stage": stage, "along": None, "count": NEIGHBOURS}
                self.keep("/api/neighbours", asked, self.read("/api/neighbours", **asked))

    def keep_distances(self, other: Question) -> dict[str, float]:
        """How far apart this text and another are, site by site."""
        distances: dict[str, float] = {}
        blocks = self.trace.config.n_block
        for first in range(0, blocks, TOGETHER):
            asked = {"blocks": [first, min(blocks, first + TOGETHER)]}
            answer = self.read("/api/compare", other=other, **asked)
            self.keep("/api/compare", asked, answer)
            distances |= {each["site"]: each["distance"] or 0.0 for each in answer["distances"]}
        return distances


def keep_largest(values: list[float | None]) -> list[float | None]:
    """Those that can be drawn; of the others, which are smaller, nothing is said."""
    sizes = [abs(value or 0.0) for value in values]
    largest = set(np.argsort(-np.array(sizes), kind="stable")[:SOURCES].tolist())
    return [value if i in largest else None for i, value in enumerate(values)]


def shorten(answer: Any) -> Any:
    """With no more digits than anyone will see."""
    if isinstance(answer, dict):
        return {name: shorten(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [shorten(value) for value in answer]
    return float(f"{answer:.{DIGITS}g}") if isinstance(answer, float) else answer
