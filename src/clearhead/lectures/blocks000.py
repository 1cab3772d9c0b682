"""The numbers of lecture 000, stops 7 to 10: many heads, the block, the stack and the residual stream."""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F

from clearhead.inspect.edits import Edit
from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Findings, ResultPart, Table, Value
from clearhead.lectures.induction_circuit import LETTERS, run_induction
from clearhead.lectures.inputs import inputs_of
from clearhead.lectures.numbers000 import ELLA, changed_rows, head_scores
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.tiny_block import run_tiny_block, z_scores
from clearhead.lectures.worked import matrix, name_tokens, stories, table, trace_of

STORY: str = inputs_of("000.7")["story"]
ROLES = ("previous", "antecedent", "induction")
LENGTH, SEQUENCES = 50, 4  # tokens per random sequence, and number of sequences, as for the head scores
LINES = {
    "x": "x",
    "t1": "t1 = LN(x)",
    "t2": "t2 = MHA(t1)",
    "t3": "t3 = t2 + x",
    "t4": "t4 = LN(t3)",
    "t5": "t5 = FFN(t4)",
    "h": "h = t5 + t3",
}
SITES = ("input", "normed", "attention", "middle", "normed2", "feedforward", "output")  # of these lines
SHOWN = 5  # numbers shown of each of the model's vectors


def many_heads() -> StopNumbers:
    """The clearest head for each role, and the loss on two texts with and without it."""
    scores = head_scores()
    rows: list[list[Value]] = []
    for role in ROLES:
        block, number, weight = scores.best(role)
        without = {f"block.{block}.head.{number}.output": 0.0}
        losses = [text_loss(text, edits) for text in (ELLA, STORY) for edits in ({}, without)]
        rows.append([f"block {block}, head {number}", weight, scores.chance[role], *losses])
    columns = [
        "head",
        "mean weight",
        "uniform",
        *(f"{text}: {kind}" for text in ("text", "story") for kind in ("loss", "without")),
    ]
    by_role = Table("the clearest head for each role", [*ROLES], columns, rows)
    n_block, n_head = scores.previous.shape
    blocks, numbers = (
        [f"{kind} {i}" for i in range(n)] for kind, n in (("block", n_block), ("head", n_head))
    )
    tables = [
        table(f"mean weight on the target: {role}", blocks, numbers, scores.kinds[role], shaded=True)
        for role in ROLES
    ]
    before, after = rows[2][5:]
    return {"loss on the story": before, "without the induction head": after}, [by_role, *tables]


def text_loss(text: str, edits: dict[str, float]) -> float:
    """The mean loss over all tokens of a text but the first."""
    trace = trace_of(text)
    edited = trace.edit(edits) if edits else trace
    return F.cross_entropy(edited.logits[:-1].double(), trace.ids[0, 1:]).item()


def width_of_a_head() -> float:
    return 768 / 12


def the_block() -> StopNumbers:
    """The lines of the block for one token: on small vectors, without ReLU, and in the model."""
    inputs = {name: torch.tensor(values, dtype=torch.float64) for name, values in inputs_of("000.8").items()}
    lines, linear = (run_tiny_block(**inputs, relu=relu) for relu in (True, False))
    x = inputs["x"][-1]
    findings: Findings = {"μ of x": x.mean().item(), "σ of x": x.std(correction=0).item()}
    numbers = [str(i + 1) for i in range(len(x))]
    trace = trace_of(ELLA)
    block, _, _ = head_scores().best("antecedent")
    it = trace.position_of("it")
    steps = trace.block[block]
    in_model = torch.stack([getattr(steps, site)[it, :SHOWN] for site in SITES])
    parts: list[ResultPart] = [
        table("layer norm of x", ["x", "x̂ = (x - μ) / σ"], numbers, torch.stack((x, z_scores(x)))),
        table("the block", [*LINES.values()], numbers, torch.stack([lines[name][-1] for name in LINES])),
        table(
            "without ReLU",
            [LINES["t5"], LINES["h"]],
            numbers,
            torch.stack([linear[name][-1] for name in ("t5", "h")]),
        ),
        table("W1 W2", ["row 1", "row 2", "row 3"], numbers, inputs["W_1"] @ inputs["W_2"]),
        table(
            f"block {block} of the model, token “it”, first {SHOWN} of {trace.config.d_model} numbers",
            [*LINES.values()],
            [str(i + 1) for i in range(SHOWN)],
            in_model,
        ),
    ]
    return findings, parts


def third_z_score() -> float:
    return z_scores(matrix([[2, 4, 6]]))[0, 2].item()


def the_stack() -> StopNumbers:
    """One token's vector between the blocks, and the model's prediction after each (the logit lens)."""
    trace = trace_of(ELLA)
    it = trace.position_of("it")
    predicted = [None, *(tokens[0] for tokens in trace.lens().tokens(it, count=1))]
    sites = ["block.0.input", *(f"block.{i}.output" for i in range(trace.config.n_block))]
    rows: list[list[Value]] = []
    below = None
    for site, likeliest in zip(sites, predicted, strict=True):
        vector = trace.read(site, rows=it)[0].double()
        similar = None if below is None else F.cosine_similarity(vector, below, dim=0).item()
        token, probability = (None, None) if likeliest is None else (likeliest[0].strip(), likeliest[1])
        rows.append([f"1 × {len(vector)}", vector.norm().item(), similar, token, probability])
        below = vector
    names = ["into block 0", *(f"after block {i}" for i in range(len(sites) - 1))]
    columns = ["shape", "length", "cosine to row above", "next token", "its probability"]
    findings: Findings = {
        "width of every block": trace.config.d_model,
        "tokens": len(trace),
        "numbers that enter and leave each block": len(trace) * trace.config.d_model,
    }
    return findings, [Table("the vector of “it” through the stack", names, columns, rows)]


def numbers_after_block() -> float:
    return 14 * 128


def residual_stream() -> StopNumbers:
    """An induction circuit of two heads on letters, and one in the model, without each head and without both."""
    sequence = inputs_of("000.10")["sequence"]
    circuit = run_induction(sequence)
    names = name_tokens(["start", *sequence])
    streams = {
        "own letter": circuit.own,
        "letter before": circuit.before,
        "letter that followed": circuit.copied,
    }
    cases = {
        "both heads": (True, True),
        "without the previous-token head": (False, True),
        "without the induction head": (True, False),
        "without both": (False, False),
    }
    runs = [run_induction(sequence, *working) for working in cases.values()]
    parts: list[ResultPart] = [
        *(table(name, names, [*LETTERS], rows, shaded=True) for name, rows in streams.items()),
        table(
            "what the induction head attends to, last token",
            [*cases][:2],
            names,
            torch.stack([run.weights[-1] for run in runs[:2]]),
            shaded=True,
        ),
        table("prediction", [*cases], [*LETTERS], torch.stack([run.prediction for run in runs]), shaded=True),
        Table(
            "in the model, on random tokens that are repeated",
            [*cases],
            ["weight on the target", "loss on the repetition"],
            circuit_of_the_model([*cases.values()]),
        ),
    ]
    found = {
        role: "block {}, head {}".format(*head_scores().best(role)[:2]) for role in ("previous", "induction")
    }
    findings: Findings = {
        "previous-token head of the model": found["previous"],
        "induction head of the model": found["induction"],
        "loss of uniform guessing": math.log(stories().config.n_vocab),
    }
    return findings, parts


def circuit_of_the_model(cases: list[tuple[bool, bool]]) -> list[list[Value]]:
    """The mean weight of the induction head on its target, and the loss, with each combination of the two heads."""
    repeated, scores = repeated_tokens(), head_scores()
    found = [scores.best(role)[:2] for role in ("previous", "induction")]
    block, number = found[1]
    again = torch.arange(LENGTH, 2 * LENGTH)
    rows: list[list[Value]] = []
    for working in cases:
        removed = [head for head, works in zip(found, working, strict=True) if not works]
        edits = {f"block.{i}.head.{j}.output": 0.0 for i, j in removed}
        edited = repeated.edit(edits) if edits else repeated
        weight = edited.weights(block)[:, number, again, again - LENGTH + 1].mean().item()
        rows.append([weight if working[1] else None, repetition_loss(edited)])
    return rows


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


def streams_that_change() -> float:
    """The index of the correct option: without any heads, which streams change with the first token's vector?"""
    trace = trace_of(ELLA)
    config = trace.config
    heads = {f"block.{i}.head.{j}.output": 0.0 for i in range(config.n_block) for j in range(config.n_head)}
    trace = trace.edit(heads)
    other = trace.edit({"block.0.input": Edit(0.0, at=0)})
    changed = changed_rows(trace.read("final"), other.read("final"))
    return 0 if changed == 1 else 2 if changed == len(trace) else 1
