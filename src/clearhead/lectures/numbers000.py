"""The numbers of lecture 000. Vectors are rows. The model is the built-in one, `stories`."""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.edits import Edit
from clearhead.inspect.trace import Trace
from clearhead.labs.heads import SEED, HeadScores, heads
from clearhead.labs.lab import Findings, Lines, ResultPart, Table, Value
from clearhead.lectures.scaled_scores import draw_scores, sharpness
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.worked import CHICKEN, matrix, name_tokens, stories, table, trace_of
from clearhead.model.attention_steps import compare, divide, mask, mix, project, softmax
from clearhead.model.lectures import simplest_attention
from clearhead.model.mask import causal_matrix
from clearhead.text.stories import story

TIRED, WIDE = (CHICKEN.format(word) for word in ("tired", "wide"))
TRUMPET = (
    "The trumpet didn't fit in the bucket because it was too big."  # differs from the others before "it"
)
ELLA = "Ella lived near the village. She had a trumpet, and it"
# Three tokens of two numbers each, and three matrices: what the page opens stops 3 and 4 with.
X = matrix([[2, 0.5], [-0.5, 1.5], [1.5, 0]])
W_Q, W_K, W_V = matrix([[0, 2], [0, 1]]), matrix([[1, 0], [0, 1]]), matrix([[0, 1], [1, 0]])
NAMES = ("1 chicken", "2 road", "3 it")
OUTPUTS = ("a1", "a2", "a3")
D_K, DRAW_SEED = 64, 1  # of the random scores of stop 5
WIDTHS = tuple(2**i for i in range(10))
VECTOR = matrix([[1, 3, 3, 5]])
ROLES = ("previous", "induction", "antecedent")
LENGTH, SEQUENCES = 50, 4  # tokens per repeated random sequence, and sequences, as for the head scores
STORIES = 2


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
    return findings, [table("cosine of the two vectors", [*cases], stages, matrix(values))]


def _cosine(one: tuple[Trace, int], other: tuple[Trace, int], stage: str) -> float:
    a, b = (trace.read(stage, rows=row)[0].double() for trace, row in (one, other))
    return F.cosine_similarity(a, b, dim=0).item()


def where_last_word_shows() -> float:
    """The index of the correct option: which tokens' vectors differ when only the last word differs?"""
    one, other = (trace_of(text.removesuffix(".")).read("final") for text in (TIRED, WIDE))
    changed = _changed_rows(one, other)
    return 0 if changed == len(one) else 1 if changed > 1 else 2


def _changed_rows(one: Tensor, other: Tensor) -> int:
    return int(((one - other).abs().amax(-1) > 1e-4).sum())


def selective_integration() -> StopNumbers:
    """What the head that finds antecedents attends to from "it", and the sum that it computes."""
    block, number, _ = head_scores().best("antecedent")
    trace = trace_of(ELLA)
    head = trace.block[block].head[number]
    weights, value = head.weights[-1], head.value
    error = (weights @ value - head.mixed[-1]).norm() / head.mixed[-1].norm()
    findings: Findings = {
        "head": f"block {block}, head {number}",
        "weight on the trumpet": weights[trace.position_of("trumpet")].item(),
        "sum of the weights": weights.sum().item(),
        "error of Σ weight · value, relative": error.item(),
    }
    names = name_tokens(trace.tokens)
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
    parts.append(table("outputs, hand-chosen vectors", OUTPUTS, ("1", "2"), simplest_attention(X)))
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
            ["q3 · k", f"/ √{trace.config.d_head}", "weight", *(f"weighed {i}" for i in numbers)],
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


def many_heads() -> StopNumbers:
    """The clearest head for each role, and the loss without it."""
    scores, repeated = head_scores(), repeated_tokens()
    rows: list[list[Value]] = [[None, None, None, repetition_loss(repeated), story_loss({})]]
    for role in ROLES:
        block, number, weight = scores.best(role)
        without = {f"block.{block}.head.{number}.output": 0.0}
        losses = repetition_loss(repeated.edit(without)), story_loss(without)
        rows.append([f"block {block}, head {number}", weight, scores.chance[role], *losses])
    columns = [
        "head",
        "mean weight on its target",
        "weight under uniform attention",
        "loss, repeated tokens",
        "loss, stories",
    ]
    by_role = Table("without the clearest head for each role", ["all heads", *ROLES], columns, rows)
    return {"loss of uniform guessing": guessing_loss()}, [by_role, *_score_tables(scores)]


def guessing_loss() -> float:
    """The loss if all tokens of the vocabulary are equally likely."""
    return math.log(stories().config.n_vocab)


def width_of_a_head() -> float:
    return 768 / 12


def _score_tables(scores: HeadScores) -> list[ResultPart]:
    n_block, n_head = scores.previous.shape
    blocks, numbers = (
        [f"{kind} {i}" for i in range(n)] for kind, n in (("block", n_block), ("head", n_head))
    )
    return [
        table(f"mean weight on the target: {role}", blocks, numbers, scores.kinds[role], shaded=True)
        for role in ROLES
    ]


@cache
def repeated_tokens() -> Trace:
    """A trace of random tokens, repeated once."""
    model = stories()
    random = torch.Generator().manual_seed(0)
    once = torch.randint(model.config.n_vocab, (SEQUENCES, LENGTH), generator=random)
    with torch.no_grad():
        return Trace(model.transformer(), torch.cat((once, once), dim=1), [[]] * SEQUENCES, single=False)


def repetition_loss(trace: Trace) -> float:
    """The loss on the second occurrence, without its first token, which is unpredictable."""
    losses = F.cross_entropy(trace.logits[:, :-1].transpose(1, 2), trace.ids[:, 1:], reduction="none")
    return losses[:, LENGTH:].mean().item()


def story_loss(edits: dict[str, float]) -> float:
    """The mean loss over all tokens of a few stories that the model was not trained on."""
    losses = []
    for number in range(STORIES):
        trace = trace_of(story(SEED, number).text).edit(edits)
        losses.append(F.cross_entropy(trace.logits[:-1], trace.ids[0, 1:], reduction="none"))
    return torch.cat(losses).mean().item()


def the_block() -> StopNumbers:
    """Layer norm of a small vector, what ReLU adds, and t1 … t5 and h of one token."""
    mean, deviation = VECTOR.mean(), VECTOR.std(correction=0)
    rows = torch.cat((VECTOR, VECTOR - mean, (VECTOR - mean) / deviation))
    inputs = matrix([[-2], [-1], [0], [1], [2]])
    W1, W2 = matrix([[1, -1]]), matrix([[1], [1]])
    linear, bent = inputs @ W1 @ W2, (inputs @ W1).relu() @ W2
    trace = trace_of(ELLA)
    steps = trace.block[1]
    names = (
        "x = input",
        "t1 = LN(x)",
        "t2 = MHA(t1)",
        "t3 = t2 + x",
        "t4 = LN(t3)",
        "t5 = FFN(t4)",
        "h = t5 + t3",
    )
    sites = (
        steps.input,
        steps.normed,
        steps.attention,
        steps.middle,
        steps.normed2,
        steps.feedforward,
        steps.output,
    )
    last = torch.stack([site[-1] for site in sites])
    t = last.double()
    findings: Findings = {
        "mean of 1 3 3 5": mean.item(),
        "standard deviation of 1 3 3 5": deviation.item(),
        "largest error of t3 = t2 + x": (t[3] - t[2] - t[0]).abs().max().item(),
        "largest error of h = t5 + t3": (t[6] - t[5] - t[3]).abs().max().item(),
    }
    shown = torch.cat((t[:, :4], t.mean(1, keepdim=True), t.std(1, correction=0, keepdim=True)), dim=1)
    columns = ["1", "2", "3", "4", "mean of all", "deviation of all"]
    parts: list[ResultPart] = [
        table("layer norm", ["x", "x - μ", "(x - μ) / σ"], ["1", "2", "3", "4"], rows),
        table(
            "x W1 W2, without and with ReLU",
            [f"x = {x:g}" for x in inputs[:, 0].tolist()],
            ["linear", "with ReLU"],
            torch.cat((linear, bent), dim=1),
        ),
        table("block 1 of the model, token “it”, first four of 128 numbers", names, columns, shown),
    ]
    return findings, parts


def third_z_score() -> float:
    x = matrix([[2, 4, 6]])
    return ((x[0, 2] - x.mean()) / x.std(correction=0)).item()


def the_stack() -> StopNumbers:
    """The shape of the stream between blocks, and the model's prediction after each (the logit lens)."""
    trace = trace_of(ELLA)
    rows: list[list[Value]] = []
    for i, ((token, probability),) in enumerate(trace.lens().tokens(count=1)):
        into, out = (" × ".join(map(str, x.shape)) for x in (trace.block[i].input, trace.block[i].output))
        rows.append([into, out, token.strip(), probability])
    findings: Findings = {"width of every block": trace.config.d_model, "tokens": len(trace)}
    names = [f"block {i}" for i in range(len(rows))]
    return findings, [Table("block by block", names, ["in", "out", "next token", "its probability"], rows)]


def numbers_after_block() -> float:
    return 14 * 128


def residual_stream() -> StopNumbers:
    """A logit as a sum, what moves from one stream to another, and an induction circuit without each part."""
    trace = trace_of(ELLA)
    parts_written = trace.attribute(" was")
    repeated, scores = repeated_tokens(), head_scores()
    found = {role: scores.best(role)[:2] for role in ("previous", "induction")}
    block, number = found["induction"]
    rows: list[list[Value]] = []
    for edits in ([], ["previous"], ["induction"], ["previous", "induction"]):
        sites = {f"block.{found[role][0]}.head.{found[role][1]}.output": 0.0 for role in edits}
        edited = repeated.edit(sites) if sites else repeated
        weight = None if "induction" in edits else _induction_weight(edited, block, number)
        rows.append([weight, repetition_loss(edited)])
    names = ["all heads", "without the previous-token head", "without the induction head", "without both"]
    findings: Findings = {
        "change at the last token": change_at_the_end(trace),
        "logit of “was”": trace.read("logits")[-1, trace.token_id(" was")].item(),
        "sum of all contributions to the logit": parts_written.total,
        "previous-token head": "block {}, head {}".format(*found["previous"]),
        "induction head": "block {}, head {}".format(*found["induction"]),
        "loss of uniform guessing": guessing_loss(),
    }
    columns = ["induction head: mean weight on its target", "loss on the repetition"]
    top: list[list[Value]] = [[value] for _, value in parts_written.top(6)]
    parts: list[ResultPart] = [
        Table(
            "the largest parts of the logit of “was”",
            [name for name, _ in parts_written.top(6)],
            ["part"],
            top,
        ),
        Table("induction circuit", names, columns, rows),
    ]
    return findings, parts


def _all_heads(trace: Trace) -> dict[str, float]:
    config = trace.config
    return {f"block.{i}.head.{j}.output": 0.0 for i in range(config.n_block) for j in range(config.n_head)}


def _induction_weight(trace: Trace, block: int, number: int) -> float:
    """The mean weight on the token that followed the first occurrence."""
    again = torch.arange(LENGTH, 2 * LENGTH)
    return trace.weights(block)[:, number, again, again - LENGTH + 1].mean().item()


def change_at_the_end(trace: Trace) -> float:
    """How far the last token's final vector moves if the first token's vector is set to 0 at the input."""
    return (_without_first(trace).read("final")[-1] - trace.read("final")[-1]).norm().item()


def _without_first(trace: Trace) -> Trace:
    return trace.edit({"block.0.input": Edit(0.0, at=0)})


def streams_that_change() -> float:
    """The index of the correct option: without any heads, which streams change with the first token's vector?"""
    trace = trace_of(ELLA)
    trace = trace.edit(_all_heads(trace))
    changed = _changed_rows(trace.read("final"), _without_first(trace).read("final"))
    return 0 if changed == 1 else 2 if changed == len(trace) else 1
