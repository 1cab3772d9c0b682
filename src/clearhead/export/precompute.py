"""Precomputed responses to the requests that the page will send, for saved pages that have no server.

A request is stored without its model and text, which are fixed.
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

# As in the page's own requests.
BLOCKS_PER_COMPARE = 5
MAX_SOURCES = 24  # heads whose tokens are returned, and tokens drawn per head
MAX_PAIRS = 3  # of components that contribute to an attention score
MAX_NEIGHBORS = 10

MAX_PATHS = 12  # followed back from the most likely token, strongest first
MAX_QUERIES = 8  # last positions of a head whose scores are explained
MAX_POSITIONS = 32  # last positions whose neighbors are stored
DIGITS = 6  # significant digits of a number

TextQuery = dict[str, Any]  # a model and a text
Exchange = dict[str, Any]  # a path, a request and its response


class ResponseRecorder:
    """Sends requests about one text and stores the responses."""

    def __init__(self, client: InProcessClient, model: str, trace: Trace) -> None:
        self.client, self.trace = client, trace
        self.query: TextQuery = {"model": model, "text": trace.ids[0].tolist()}
        self.exchanges: list[Exchange] = []

    def request(self, path: str, **fields: Any) -> InProcessResponse:
        response = self.client.request("POST", path, json.dumps({**self.query, **fields}))
        if response.status != 200:
            raise UserError(json.loads(response.body)["error"]["message"])
        return response

    def request_json(self, path: str, **fields: Any) -> Any:
        return json.loads(self.request(path, **fields).body)

    def store(self, path: str, fields: dict[str, Any], response: Any) -> None:
        self.exchanges.append({"path": path, "request": fields, "response": round_numbers(response)})

    def record_attributions(self, tokens: list[int]) -> None:
        """Record the attribution of each token's logit; for the first token, also along the strongest paths."""
        next_hops = [self._attribute(token, []) for token in tokens]
        order = count()  # breaks ties
        paths = [(-size, next(order), [hop]) for size, hop in next_hops[0]]
        heapq.heapify(paths)
        for _ in range(MAX_PATHS):
            if not paths:
                break
            _, _, path = heapq.heappop(paths)
            for size, hop in self._attribute(tokens[0], path):
                heapq.heappush(paths, (-size, next(order), [*path, hop]))

    def _attribute(self, token: int, path: list[dict[str, int]]) -> list[tuple[float, dict[str, int]]]:
        """Record the attribution along a path, and return the possible next hops with their sizes."""
        fields = {"token": token, "position": -1, "through": path, "heads": MAX_SOURCES}
        response = self.request_json("/api/attribute", **fields)
        for head in response["heads"]:
            head["values"] = keep_largest(head["values"])
        self.store("/api/attribute", fields, response)
        return [
            (abs(value), {"block": head["block"], "head": head["head"], "source": source})
            for head in response["heads"]
            for source, value in enumerate(head["values"])
            if value
        ]

    def record_scores(self, block: int, head: int) -> None:
        """Record what sets a head's largest score apart from the second largest, in each of the last rows."""
        name = f"block.{block}.head.{head}"
        weights = self.trace.read(f"{name}.weights").float().cpu().numpy()
        masked = self.trace.read(f"{name}.masked").float().cpu().numpy()
        for row in range(max(0, len(weights) - MAX_QUERIES), len(weights)):
            key = int(np.argmax(weights[row]))
            others = np.where(np.isneginf(masked[row]), -1, weights[row])
            others[key] = -1
            if others.max() < 0:
                continue  # nothing to compare the only visible token with
            fields = {
                "block": block,
                "head": head,
                "query_position": row,
                "key_position": key,
                "against_position": int(np.argmax(others)),
                "count": MAX_PAIRS,
            }
            self.store("/api/why", fields, self.request_json("/api/why", **fields))

    def record_neighbors(self, stages: list[str]) -> None:
        """Record the tokens nearest to the vectors of the last positions at these stages."""
        for row in range(max(0, len(self.trace) - MAX_POSITIONS), len(self.trace)):
            for stage in stages:
                fields = {"position": row, "stage": stage, "along": None, "count": MAX_NEIGHBORS}
                self.store("/api/neighbors", fields, self.request_json("/api/neighbors", **fields))

    def record_distances(self, other: TextQuery) -> dict[str, float]:
        """Record the distance to another text at each site, and return the distances."""
        distances: dict[str, float] = {}
        blocks = self.trace.config.n_block
        for start in range(0, blocks, BLOCKS_PER_COMPARE):
            fields = {"blocks": [start, min(blocks, start + BLOCKS_PER_COMPARE)]}
            response = self.request_json("/api/compare", other=other, **fields)
            self.store("/api/compare", fields, response)
            distances |= {each["site"]: each["distance"] or 0.0 for each in response["distances"]}
        return distances


def keep_largest(values: list[float | None]) -> list[float | None]:
    """Keep the values that are drawn, and replace the smaller ones with None."""
    sizes = [abs(value or 0.0) for value in values]
    largest = set(np.argsort(-np.array(sizes), kind="stable")[:MAX_SOURCES].tolist())
    return [value if i in largest else None for i, value in enumerate(values)]


def round_numbers(value: Any) -> Any:
    """Round every float in a JSON value to the digits that the page shows."""
    if isinstance(value, dict):
        return {name: round_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [round_numbers(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
