"""The lectures' worked example: a query attends to a sequence of 0s and 1s."""

from __future__ import annotations

import math

import torch

from clearhead.errors import UserError
from clearhead.labs.lab import Result, Table
from clearhead.model.lectures import query_attention

VECTORS = {"0": [1.0, 0.0], "1": [0.0, 1.0]}


def run(sequence: str, query: str, boost: float, base: str) -> Result:
    """Keys are the digits' vectors times the boost, values the vectors; base 3 multiplies the scores by ln 3."""
    if not sequence or set(sequence) - set(VECTORS):
        raise UserError(f"sequence = {sequence!r}: expected digits 0 and 1, such as 0010")
    vectors = torch.tensor([VECTORS[digit] for digit in sequence], dtype=torch.float64)
    stretch = math.log(3) if base == "3" else 1.0
    asked = torch.tensor(VECTORS[query], dtype=torch.float64)
    scores = boost * vectors @ asked
    _, weights, mixed = query_attention(stretch * asked, boost * vectors, vectors)
    names = [f"{digit} at {i}" for i, digit in enumerate(sequence)]
    steps = torch.stack((scores, weights), dim=1)
    looked = torch.tensor([digit == query for digit in sequence])
    return Result(
        lab="attention",
        settings={"sequence": sequence, "query": query, "boost": boost, "base": base},
        findings={
            "weight on the target": weights[looked].sum().item(),
            "result 0": mixed[0].item(),
            "result 1": mixed[1].item(),
            "plain average 0": vectors.mean(0)[0].item(),
            "plain average 1": vectors.mean(0)[1].item(),
        },
        parts=[
            Table("steps", names, ["score", "weight"], steps.tolist()),
            Table("weights", [f"query {query}"], names, [weights.tolist()], shaded=True),
            Table(
                "result",
                ["attention", "plain average"],
                ["0", "1"],
                [mixed.tolist(), vectors.mean(0).tolist()],
            ),
        ],
    )
