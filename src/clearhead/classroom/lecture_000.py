"""Exercises on lecture 000: from static to contextual embeddings, and the transformer block."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from clearhead.classroom.drawing import COLORS, NAMES, THINGS, prompt_about, sentence
from clearhead.classroom.exercise import Exercise


def _three_tokens(random: Random) -> dict[str, Any]:
    return {"x_three": torch.tensor([[float(random.randint(-2, 2)) for _ in range(2)] for _ in range(3)])}


SIMPLEST_ATTENTION = Exercise(
    name="simplest-attention",
    lecture="000",
    title="The simplest attention",
    points=2,
    text="""\
Write attention without any matrices. The score of token $j$ for token $i$ is the dot product $x_i \\cdot x_j$.
Softmax over all $j \\le i$ turns the scores into weights $\\alpha_{ij}$, and the result is
$a_i = \\sum_j \\alpha_{ij} x_j$.

`simplest_attention(x)` takes a tensor with one row per token and returns a tensor of the same shape. `x_three`
holds three tokens: try the function on them, and check one row by hand.""",
    asks="simplest_attention",
    draw=_three_tokens,
    solution="""\
def simplest_attention(x):
    scores = x @ x.T
    future = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1) @ x""",
    visible="""\
result = simplest_attention(x_three)
assert result.shape == x_three.shape
assert torch.allclose(result[0], x_three[0])  # the first token sees only itself
assert result[1].min() >= x_three[:2].min() - 1e-6 and result[1].max() <= x_three[:2].max() + 1e-6""",
    hidden="""\
generator = torch.Generator().manual_seed(random.randrange(2**31))
cases = [(torch.randn(n, 4, generator=generator),) for n in (1, 3, 6)]""",
)


def _one_vector(random: Random) -> dict[str, Any]:
    return {"x_vector": torch.tensor([float(n) for n in random.sample(range(-9, 10), 6)])}


LAYER_NORM = Exercise(
    name="layer-norm",
    lecture="000",
    title="Layer norm",
    points=2,
    text="""\
Layer norm is the z-score of one vector: subtract the mean $\\mu$ of its $d$ entries, divide by their standard
deviation $\\sigma$ (with $1/d$, not $1/(d-1)$), then multiply by $\\gamma$ and add $\\beta$.

`layer_norm(x, gamma, beta)` takes three vectors of the same length. Do not use `torch.nn`. Try the
function on `x_vector`.""",
    asks="layer_norm",
    draw=_one_vector,
    solution="""\
def layer_norm(x, gamma, beta):
    mean = x.mean()
    deviation = ((x - mean) ** 2).mean().sqrt()
    return gamma * (x - mean) / deviation + beta""",
    visible="""\
result = layer_norm(x_vector, torch.ones(6), torch.zeros(6))
assert result.shape == (6,)
assert abs(result.mean()) < 1e-5
assert torch.equal(result.argsort(), x_vector.argsort())""",
    hidden="""\
generator = torch.Generator().manual_seed(random.randrange(2**31))
cases = [tuple(torch.randn(n, generator=generator) for _ in range(3)) for n in (4, 16)]""",
)


def _head_of_a_sentence(random: Random) -> dict[str, Any]:
    return {
        "head_text": sentence(random),
        "head_block": random.randrange(4),
        "head_number": random.randrange(4),
    }


ONE_HEAD = Exercise(
    name="one-head",
    lecture="000",
    title="One head, checked against the model",
    points=4,
    text="""\
Write one attention head of the model `stories`: **project** into query, key and value (each with a bias),
**compare** queries with keys, **divide** by $\\sqrt{d_k}$, **mask** the future, **softmax**, then **weigh** and
**sum** the values.

`one_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V)` takes the head's input, one row per token, and returns one row of
mixed values per token (before $W^O$). The test below runs it with the weights of head `head_number` in
block `head_block`, and compares the result with what the model computed for `head_text`.""",
    asks="one_head",
    draw=_head_of_a_sentence,
    solution="""\
def one_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    query, key, value = x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V
    scores = query @ key.T / key.shape[-1] ** 0.5
    future = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1) @ value""",
    visible="""\
trace = model.inspect(head_text)
site = f"block.{head_block}.head.{head_number}"
weights = [model.weight(f"{site}.{kind}_{role}") for role in "QKV" for kind in "Wb"]
result = one_head(trace[f"block.{head_block}.normed"], *weights)
assert result.shape == trace[f"{site}.mixed"].shape
assert torch.allclose(result, trace[f"{site}.mixed"], atol=1e-4)""",
    hidden="""\
generator = torch.Generator().manual_seed(random.randrange(2**31))


def inputs(tokens, width, features):
    shapes = [(tokens, width), *[(width, features), (features,)] * 3]
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


cases = [inputs(1, 3, 2), inputs(5, 6, 4), inputs(8, 32, 32)]""",
)


def _words_to_repeat(random: Random) -> dict[str, Any]:
    return {"repeated_words": random.sample([*THINGS, *COLORS, *NAMES], 8)}


INDUCTION_HEAD = Exercise(
    name="induction-head",
    lecture="000",
    title="Find the induction head",
    points=4,
    text="""\
In a text that consists of $n$ tokens followed by the same $n$ tokens, an induction head attends from each
repeated token to the token **after** its first occurrence: from position $n + i$ to position $i + 1$.

`find_induction_head(weights)` takes the attention weights of all heads, with the shape blocks × heads × $2n$ ×
$2n$, and returns the indices of the block and head that put the most attention there, averaged over the
repeated tokens. The test below runs it on the model's heads, with your words repeated.""",
    asks="find_induction_head",
    draw=_words_to_repeat,
    solution="""\
def find_induction_head(weights):
    n = weights.shape[-1] // 2
    second = torch.arange(n, 2 * n)
    scores = weights[:, :, second, second - n + 1].mean(-1)
    return divmod(int(scores.argmax()), scores.shape[1])""",
    visible="""\
trace = model.inspect(" " + " ".join(repeated_words * 2))
assert len(trace.tokens) == 2 * len(repeated_words)
weights = torch.stack([torch.stack([head.weights for head in block.head]) for block in trace.block])
block, head = find_induction_head(weights)
assert 0 <= block < 4 and 0 <= head < 4""",
    hidden="""\
generator = torch.Generator().manual_seed(random.randrange(2**31))


def pattern(blocks, heads, n):
    scores = torch.randn(blocks, heads, 2 * n, 2 * n, generator=generator)
    later = torch.arange(n, 2 * n)
    targets = {"next": later - n + 1, "same": later - n, "previous": later - 1}
    places = random.sample(range(blocks * heads), 3)
    for (_, target), place, boost in zip(targets.items(), places, (4, 6, 6)):
        scores[place // heads, place % heads, later, target] += boost
    future = torch.ones(2 * n, 2 * n).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1)


cases = [(pattern(2, 2, 4),), (pattern(1, 5, 6),), (pattern(3, 2, 5),)]""",
)


def _two_prompts(random: Random) -> dict[str, Any]:
    clean, other = prompt_about(random, random.sample(THINGS, 2))
    return {"clean_prompt": clean, "other_prompt": other}


PATCH = Exercise(
    name="patch-the-prompt",
    lecture="000",
    title="Patch the prompt",
    points=4,
    text="""\
The two prompts below differ in one word. Patch one vector of the residual stream from the other run into the
clean run, and see whether the prediction changes.

`patched_probability(clean, other, block, position)` takes two texts. It returns the probability of **the token
that the model predicts for `other`** (the likeliest one) in a run of `clean` in which only the input of the
block at that position comes from the run of `other`. `trace.edit({…: ch.Edit(…, at=[…])})` does the
patching.""",
    asks="patched_probability",
    draw=_two_prompts,
    solution="""\
def patched_probability(clean, other, block, position):
    source = model.inspect(other)
    predicted = source.logits[-1].argmax()
    patch = ch.Edit(source, at=[position])
    patched = model.inspect(clean).edit({f"block.{block}.input": patch})
    return patched.logits[-1].softmax(-1)[predicted].item()""",
    visible="""\
tokens = [model.inspect(text).tokens for text in (clean_prompt, other_prompt)]
position = next(i for i, (one, two) in enumerate(zip(*tokens)) if one != two)
early, late = (patched_probability(clean_prompt, other_prompt, block, position) for block in (0, 3))
assert 0 <= late <= 1 and 0.5 < early <= 1""",
    hidden="""\
from clearhead.classroom.drawing import THINGS, prompt_about

cases = []
for block in (0, 1, 3):
    pair = prompt_about(random, random.sample(THINGS, 2))
    tokens = [model.inspect(text).tokens for text in pair]
    differ = next(i for i, (one, two) in enumerate(zip(*tokens)) if one != two)
    # In the first case, the patch decides the prediction, so its probability is large.
    position = differ if block == 0 else random.choice([differ, differ, len(tokens[0]) - 1])
    cases.append((*pair, block, position))""",
)

EXERCISES = (SIMPLEST_ATTENTION, LAYER_NORM, ONE_HEAD, INDUCTION_HEAD, PATCH)
