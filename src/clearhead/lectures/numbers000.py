"""The numbers of lecture 000, stops 1 to 6. Vectors are rows. The model is the built-in one, `stories`."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.trace import Trace
from clearhead.labs.heads import HeadScores, heads
from clearhead.labs.lab import Findings, Lines, ResultPart
from clearhead.labs.opening import SENTENCES
from clearhead.lectures.inputs import inputs_of
from clearhead.lectures.scaled_scores import draw_scores, sharpness
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.worked import matrix, name_tokens, stories, table, trace_of
from clearhead.model.attention_steps import compare, divide, mask, mix, project, softmax
from clearhead.model.lectures import simplest_attention
from clearhead.model.mask import causal_matrix

(TIRED, TRUMPET), (_, WIDE) = inputs_of("000.1")["pairs"]
ELLA = SENTENCES[1][0]  # which the page opens the built-in model with
# Three tokens of two numbers each, and three matrices.
X = matrix(inputs_of("000.3")["x"])
W_Q, W_K, W_V = (matrix(inputs_of("000.4")[name]) for name in ("W_Q", "W_K", "W_V"))
NAMES = name_tokens(inputs_of("000.3")["words"])
OUTPUTS = ("a1", "a2", "a3")
D_K, DRAW_SEED = inputs_of("000.5")["d_k"], inputs_of("000.5")["seed"]
WIDTHS = tuple(2**i for i in range(10))


def static_and_contextual() -> StopNumbers:
    """The cosine of a token's two vectors, from the embedding to the last block."""
    cases = {
        "it, followed by tired / wide": (TIRED, WIDE, "it"),
        "the period after tired / wide": (TIRED, WIDE, "."),
        "it, after the chicken / the trumpet": (TIRED, TRUMPET, "it"),
    }
    n_block = stories().transformer().config.n_block
    stages = ["embedding", *(f"block.{i}.output" for i in range(n_block))]
    values = []
    for one, other, word in cases.values():
        first, second = ((trace, trace.position_of(word)) for trace in (trace_of(one), trace_of(other)))
        values.append([_cosine(first, second, stage) for stage in stages])
    findings: Findings = {"cosine of “it” after different words": values[2][-1]}
    columns = ["table", *(f"after block {i}" for i in range(n_block))]
    return findings, [table("cosine of the two vectors", [*cases], columns, matrix(values))]


def _cosine(one: tuple[Trace, int], other: tuple[Trace, int], stage: str) -> float:
    a, b = (trace.read(stage, rows=row)[0].double() for trace, row in (one, other))
    return F.cosine_similarity(a, b, dim=0).item()


def where_last_word_shows() -> float:
    """The index of the correct option: which tokens' vectors differ when only the last word differs?"""
    one, other = (trace_of(text.removesuffix(".")).read("final") for text in (TIRED, WIDE))
    changed = changed_rows(one, other)
    return 0 if changed == len(one) else 1 if changed > 1 else 2


def changed_rows(one: Tensor, other: Tensor) -> int:
    return int(((one - other).abs().amax(-1) > 1e-4).sum())


def selective_integration() -> StopNumbers:
    """What the head that finds antecedents attends to from "it", and the sum that it computes."""
    block, number, _ = head_scores().best("antecedent")
    trace = trace_of(ELLA)
    it = trace.position_of("it")
    head = trace.block[block].head[number]
    weights, value = head.weights[it, : it + 1], head.value[: it + 1]
    error = (weights @ value - head.mixed[it]).norm() / head.mixed[it].norm()
    findings: Findings = {
        "head": f"block {block}, head {number}",
        "weight on the trumpet": weights[trace.position_of("trumpet")].item(),
        "sum of the weights": weights.sum().item(),
        "error of Σ weight · value, relative": error.item(),
    }
    names = name_tokens(trace.tokens[: it + 1])
    return findings, [table("attention from “it”", names, ["weight"], weights[:, None], shaded=True)]


def weighted_sum() -> float:
    return (matrix([[0.5, 0.25, 0.25]]) @ matrix([[2], [4], [10]])).item()


@cache
def head_scores() -> HeadScores:
    """The scores of the built-in model's heads, on the same texts as the page's."""
    return heads(stories())


def simplest() -> StopNumbers:
    """The simplest attention, on three hand-chosen vectors and on the first three embeddings of a text."""
    parts: list[ResultPart] = []
    trace = trace_of(ELLA)
    real = trace.read("embedding")[:3].double()
    for kind, names, x in (
        ("hand-chosen vectors", NAMES, X),
        ("embeddings from the model", name_tokens(trace.tokens[:3]), real),
    ):
        scores = compare(x, x)
        weights = softmax(mask(scores, causal_matrix(3, 3)))
        parts.append(table(f"scores, {kind}", names, names, scores))
        parts.append(table(f"weights, {kind}", names, names, weights, shaded=True))
        if x is X:
            parts.append(table(f"outputs, {kind}", OUTPUTS, ("1", "2"), simplest_attention(x)))
    weight = softmax(compare(X, X)[2])[0].item()
    return {"weight of “it” on “chicken”": weight}, parts


def simplest_weight() -> float:
    """The weight of x3 on x1 in the question's example."""
    x = matrix([[2, 0], [0, 1], [1, 0]])
    return softmax(compare(x, x)[2])[0].item()


def three_roles() -> StopNumbers:
    """The same vectors without and with the matrices of the three roles."""
    Q, K, V = project(X, W_Q), project(X, W_K), project(X, W_V)
    plain, full = (softmax(mask(scores, causal_matrix(3, 3))) for scores in (compare(X, X), compare(Q, K)))
    findings: Findings = {
        "simplified weight of “it” on “chicken”": plain[2, 0].item(),
        "weight of “it” on “road”": full[2, 1].item(),
        "score of 1 with 2": (Q[0] @ K[1]).item(),
        "score of 2 with 1": (Q[1] @ K[0]).item(),
    }
    columns = [f"{name} {i}" for name in ("x", "query", "key", "value") for i in (1, 2)]
    parts: list[ResultPart] = [
        table("three roles", NAMES, columns, torch.cat((X, Q, K, V), dim=1)),
        table("simplified weights", NAMES, NAMES, plain, shaded=True),
        table("simplified outputs", OUTPUTS, ("1", "2"), mix(plain, X)),
        table("scores Q Kᵀ", NAMES, NAMES, compare(Q, K)),
        table("weights", NAMES, NAMES, full, shaded=True),
        table("outputs", OUTPUTS, ("1", "2"), mix(full, V)),
    ]
    return findings, parts


def weight_without_query() -> float:
    """The weight of x3 on x1 if W^Q is all zeros."""
    return softmax(project(X, W_K) @ project(X[2], torch.zeros_like(W_Q)))[0].item()


def why_divide() -> StopNumbers:
    """The softmax of random scores, with and without the division."""
    drawn = draw_scores(D_K, DRAW_SEED)
    measured = {"undivided": sharpness(drawn), "divided by √d_k": sharpness(divide(drawn, D_K))}
    largest: dict[str, list[float | None]] = {name: [] for name in measured}
    for d_k in WIDTHS:
        drawn = draw_scores(d_k, DRAW_SEED)
        for name, scores in zip(largest, (drawn, divide(drawn, d_k)), strict=True):
            largest[name].append(sharpness(scores)[1])
    columns = ["standard deviation", "largest weight", "slope α (1 - α)"]
    parts: list[ResultPart] = [
        table(f"scores and weights, d_k = {D_K}", [*measured], columns, matrix([*measured.values()])),
        Lines(
            "largest weight by width",
            "d_k",
            "mean largest weight",
            [float(d_k) for d_k in WIDTHS],
            largest,
            logarithmic=True,
        ),
    ]
    undivided, divided = measured.values()
    findings: Findings = {
        "standard deviation, undivided": undivided[0],
        "standard deviation, divided": divided[0],
        "largest weight, undivided": undivided[1],
        "largest weight, divided": divided[1],
    }
    return findings, parts


def spread_ratio() -> float:
    """How many times larger the spread of dot products is with 64 features than with 4: variances add up."""
    return (64 / 4) ** 0.5


def steps_for_x3() -> StopNumbers:
    """Project, compare, divide, softmax, weigh, sum and write, for the third token in a head of the model."""
    block, number, _ = head_scores().best("antecedent")
    trace = trace_of(ELLA)
    head = trace.block[block].head[number]
    weights, value = head.weights[2, :3], head.value[:3]
    steps = torch.stack((head.scores[2, :3], head.scaled[2, :3], weights), dim=1)
    weighed = weights[:, None] * value
    rows = torch.stack([each[2, :3] for each in (head.query, head.mixed, head.output)])
    names, numbers = name_tokens(trace.tokens[:3]), ("1", "2", "3")
    parts: list[ResultPart] = [
        table(
            "project: first three numbers of each key and value",
            names,
            [f"{name} {i}" for name in ("key", "value") for i in numbers],
            torch.cat((head.key[:3, :3], value[:, :3]), dim=1),
        ),
        table(
            "compare, divide, softmax, weigh",
            names,
            ["q3 · k", f"/ √{trace.config.d_head}", "weight", *(f"weighted {i}" for i in numbers)],
            torch.cat((steps, weighed[:, :3]), dim=1),
        ),
        table("query, sum and output: first three numbers", ("q3", "a3", "a3 W^O"), numbers, rows),
    ]
    findings: Findings = {
        "head": f"block {block}, head {number}",
        "weight of “near” on “Ella”": weights[0].item(),
    }
    return findings, parts


def third_weight() -> float:
    """The weight of x3 on itself in the question's example, with d_k = 4."""
    return softmax(divide(matrix([[2, 0, 2]]), 4))[0, 2].item()
