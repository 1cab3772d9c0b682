"""Exercises on lecture 001: transformers by worked numbers."""

from __future__ import annotations

from random import Random
from typing import Any

from clearhead.classroom.drawing import sentence
from clearhead.classroom.exercise import Exercise

CHAIN_RULE = Exercise(
    name="chain-rule",
    lecture="001",
    title="The probability of a sentence",
    points=3,
    text="""\
A language model assigns a probability to a whole text:
$P(w_1 \\ldots w_n) = \\prod_i P(w_i \\mid w_1 \\ldots w_{i-1})$.

`log_probability(text)` returns the sum of the natural logarithms $\\log P(w_i \\mid w_1 \\ldots w_{i-1})$ over
all tokens but the first, which has nothing before it. `model.inspect(text)` gives you the token ids
(`trace.ids[0]`) and the logits after each token (`trace.logits`).""",
    asks="log_probability",
    draw=lambda random: {"chain_text": sentence(random)},
    solution="""\
def log_probability(text):
    trace = model.inspect(text)
    ids = trace.ids[0]
    logs = trace.logits.log_softmax(-1)
    return sum(logs[i - 1, ids[i]].item() for i in range(1, len(ids)))""",
    visible="""\
assert log_probability(chain_text) < 0
assert log_probability("The cat sat on the mat mat mat") < log_probability("The cat sat on the mat")
words = chain_text.split()
assert log_probability(chain_text) > log_probability(" ".join(reversed(words)))""",
    hidden="""\
from clearhead.classroom.drawing import sentence

cases = [(sentence(random),) for _ in range(3)]""",
)


def _digits(random: Random) -> dict[str, Any]:
    ones = random.randint(1, 3)
    digits = [1] * ones + [0] * random.randint(ones + 1, 6)
    random.shuffle(digits)
    return {"digits": digits, "base": random.choice([2, 3, 4, 5])}


QUERY = Exercise(
    name="query-and-keys",
    lecture="001",
    title="One query, by mental arithmetic",
    points=2,
    text="""\
The digit 0 is the vector $[1, 0]$ and 1 is $[0, 1]$; they serve as both keys and values. The query is
$[0, 1]$: it looks for the 1s in `digits`. For mental arithmetic, use `base` instead of $e$ in the softmax,
and do not divide by anything.

Assign the result of attention, the weighted sum of the values, to `query_result`: a list of two numbers.
Fractions such as `3 / 8` are fine.""",
    asks="query_result",
    draw=_digits,
    solution="""\
ones = base * sum(digits)
zeros = len(digits) - sum(digits)
query_result = [zeros / (ones + zeros), ones / (ones + zeros)]""",
    visible="""\
assert len(query_result) == 2
assert abs(sum(query_result) - 1) < 1e-6  # a weighted average of [1, 0] and [0, 1]""",
)

BOOST = Exercise(
    name="boosted-keys",
    lecture="001",
    title="Attention in a long sequence",
    points=3,
    text="""\
One 1 is followed by `n_zeros` zeros. With the query $[0, 1]$ and the keys $[1, 0]$ and $[0, 1]$, the weight on
the 1 becomes small in a long sequence. Multiplying the keys by a number (in the lecture, 10) makes the
attention more peaked.

By what number must the keys be multiplied so that the weight on the 1 is exactly `wanted_weight`? Assign it to
`boost`. The softmax uses $e$, and the scores are not divided by $\\sqrt{d_k}$.""",
    asks="boost",
    draw=lambda random: {
        "n_zeros": random.randint(20, 2000),
        "wanted_weight": random.choice([0.5, 0.8, 0.9, 0.95, 0.99]),
    },
    solution="""\
import math

boost = math.log(n_zeros * wanted_weight / (1 - wanted_weight))""",
    visible="""\
assert 0 < float(boost) < 100""",
)

EXERCISES = (CHAIN_RULE, QUERY, BOOST)
