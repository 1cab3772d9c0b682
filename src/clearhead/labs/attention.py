"""The lectures' worked example: a query attends to a sequence of 0s and 1s. T digits, 2 features."""

from __future__ import annotations

import math
from itertools import groupby

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.labs.lab import Result, Table, Value
from clearhead.model.lectures import linear_attention, query_attention

VECTORS = {"0": [1.0, 0.0], "1": [0.0, 1.0]}
ZEROS = (1, 3, 10, 30, 100, 300, 1000)
BOOST = 10.0  # the lecture's W^K = 10 I
LISTED = 20  # digits; in a longer sequence, equal neighbors share a row
LARGEST = 100.0  # absolute value of a number in the matrix


def run(sequence: str, query: str, boost: float, base: str, matrix: str) -> Result:
    """Values are the digits' vectors, keys the vectors times the boost; base 3 multiplies the scores by ln 3."""
    if not sequence or set(sequence) - set(VECTORS):
        shown = sequence if len(sequence) <= LISTED else f"{sequence[:LISTED]}…"
        raise UserError(f"sequence = {shown!r}: expected digits 0 and 1, such as 0010")
    W, asked, values = _parse(matrix), _vectors(query)[0], _vectors(sequence)
    keys = boost * values
    scores = linear_attention(asked, keys, W)
    _, weights, mixed = query_attention(_stretch(base) * (W @ asked), keys, values)
    looked = torch.tensor([digit == query for digit in sequence])
    return Result(
        lab="attention",
        settings={"sequence": sequence, "query": query, "boost": boost, "base": base, "matrix": matrix},
        findings={"weight on the target": weights[looked].sum().item()},
        parts=[
            *_steps(sequence, query, scores, weights),
            Table(
                "result",
                ["attention", "plain average"],
                ["0", "1"],
                [mixed.tolist(), values.mean(0).tolist()],
            ),
            _two_sides(asked, boost, W),
            _sweep(base),
        ],
    )


def _vectors(digits: str) -> Tensor:
    """T digits as T 2."""
    return torch.tensor([VECTORS[digit] for digit in digits], dtype=torch.float64)


def _parse(matrix: str) -> Tensor:
    """Parse W from a text such as 1 0 / 0 10."""
    try:
        W = torch.tensor([[float(x) for x in row.split()] for row in matrix.split("/")], dtype=torch.float64)
    except ValueError:
        W = torch.empty(0)
    if W.shape != (2, 2) or not (W.abs() <= LARGEST).all():
        raise UserError(
            f"matrix = {matrix!r}: expected two rows of two numbers from -{LARGEST:g} to {LARGEST:g}, "
            "such as 1 0 / 0 10"
        )
    return W


def _stretch(base: str) -> float:
    return math.log(3) if base == "3" else 1.0


def _steps(sequence: str, query: str, scores: Tensor, weights: Tensor) -> list[Table]:
    """The score and weight of each digit or, in a long sequence, of each run of equal digits."""
    if len(sequence) <= LISTED:
        names = [f"{digit} at {i}" for i, digit in enumerate(sequence)]
        steps = torch.stack((scores, weights), dim=1).tolist()
        return [
            Table("steps", names, ["score", "weight"], steps),
            Table("weights", [f"query {query}"], names, [weights.tolist()], shaded=True),
        ]
    names, first = [], 0
    rows: list[list[Value]] = []
    for digit, run in groupby(sequence):
        count = len(list(run))
        names.append(f"{digit} at {first}" if count == 1 else f"{digit} at {first} to {first + count - 1}")
        together = weights[first : first + count].sum().item()
        rows.append([count, scores[first].item(), weights[first].item(), together])
        first += count
    columns = ["digits", "score", "weight of each", "total weight"]
    return [
        Table("steps", names, columns, rows),
        Table("weights", [f"query {query}, total"], names, [[row[-1] for row in rows]], shaded=True),
    ]


def _two_sides(asked: Tensor, boost: float, W: Tensor) -> Table:
    """The lectures' "linear" attention, k W q: the score is the same with W applied to the key or to the query."""
    W_q = W @ asked
    rows: list[list[Value]] = []
    for digit in VECTORS:
        key = boost * _vectors(digit)[0]
        scores = (key @ W @ asked).item(), (key @ W_q).item()
        rows.append([_format_vector(key), _format_vector(key @ W), scores[0], _format_vector(W_q), scores[1]])
    return Table("W on either side", [*VECTORS], ["k", "k W", "(k W) q", "W q", "k (W q)"], rows)


def _format_vector(vector: Tensor) -> str:
    return f"[{', '.join(f'{x:g}' for x in vector.tolist())}]"


def _sweep(base: str) -> Table:
    """The weight on a single 1 as 0s are added, with plain keys and with boosted ones."""
    asked = _stretch(base) * _vectors("1")[0]
    rows: list[list[Value]] = []
    for zeros in ZEROS:
        values = _vectors("1" + zeros * "0")
        by_boost = (query_attention(asked, boost * values, values)[1] for boost in (1.0, BOOST))
        rows.append([weights[0].item() for weights in by_boost])
    names = [f"{zeros} {'zero' if zeros == 1 else 'zeros'}" for zeros in ZEROS]
    columns = ["keys as they are", f"keys times {BOOST:g}"]
    return Table("weight on a single 1", names, columns, rows, shaded=True)
