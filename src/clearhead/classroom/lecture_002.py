"""Exercises on lecture 002: one attention head, by matrices."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from clearhead.classroom.drawing import blank_prompt, sentence, strong_weight
from clearhead.classroom.exercise import Exercise

SKIP_GRAM = Exercise(
    name="skip-gram-pairs",
    lecture="002",
    title="Skip-gram training pairs",
    points=2,
    text="""\
Skip-gram learns a vector for each word by predicting its neighbors. Its training samples are all pairs of a
word and a neighbor at most `window` positions away.

`skip_gram_pairs(words, window)` takes a list of words and returns a list of pairs, in the order of the words;
the neighbors of one word come from left to right. For *the quick brown fox* and a window of 2, the first pairs
are (the, quick), (the, brown), (quick, the).""",
    asks="skip_gram_pairs",
    draw=lambda random: {"pair_words": sentence(random).rstrip(".").split()},
    solution="""\
def skip_gram_pairs(words, window):
    pairs = []
    for i, word in enumerate(words):
        for j in range(max(0, i - window), min(len(words), i + window + 1)):
            if j != i:
                pairs.append((word, words[j]))
    return pairs""",
    visible="""\
first = [tuple(pair) for pair in skip_gram_pairs("the quick brown fox".split(), 2)]
assert first[:3] == [("the", "quick"), ("the", "brown"), ("quick", "the")]
assert len(skip_gram_pairs(pair_words, 1)) == 2 * len(pair_words) - 2""",
    hidden="""\
from clearhead.classroom.drawing import sentence

cases = [(sentence(random).rstrip(".").split(), window) for window in (1, 2, 3)]
cases.append((["tick", "tick", "tock"], 5))""",
)


def _scores(random: Random) -> dict[str, Any]:
    return {"S_four": torch.tensor([[float(random.randint(-3, 3)) for _ in range(4)] for _ in range(4)])}


CAUSAL_WEIGHTS = Exercise(
    name="causal-weights",
    lecture="002",
    title="Mask and softmax",
    points=2,
    text="""\
Language has a temporal dimension: a token cannot attend to later ones. Turn a square matrix of scores into
attention weights: $-\\infty$ above the diagonal, then softmax, row by row.

`causal_weights(S)` returns a matrix of the same shape. Try it on `S_four`.""",
    asks="causal_weights",
    draw=_scores,
    solution="""\
def causal_weights(S):
    future = torch.ones_like(S).triu(1).bool()
    return S.masked_fill(future, -torch.inf).softmax(-1)""",
    visible="""\
P = causal_weights(S_four)
assert P.shape == S_four.shape
assert P[0].tolist() == [1, 0, 0, 0]
assert torch.allclose(P.sum(1), torch.ones(4))""",
    hidden="""\
generator = torch.Generator().manual_seed(random.randrange(2**31))
cases = [(3 * torch.randn(n, n, generator=generator),) for n in (1, 4, 8)]""",
)


def _weight(random: Random) -> dict[str, Any]:
    text, block, head, query, key = strong_weight(random)
    return {
        "weight_text": text,
        "weight_block": block,
        "weight_head": head,
        "query_position": query,
        "key_position": key,
    }


EXPLAIN = Exercise(
    name="explain-this-weight",
    lecture="002",
    title="Explain this weight",
    points=4,
    text="""\
In `weight_text`, head `weight_head` of block `weight_block` puts a lot of attention on `key_position` from
`query_position`. Each score is a dot product of a query and a key, and both are computed from the sum of what
the components before the block wrote into the residual stream: the embedding, the position, earlier heads,
and so on. So the score splits into one part for each pair of components.

For a head of a trace, `head.why(query_position, key_position)` computes the parts, and `.top(n)` lists the largest.
Leave out all pairs in which either name contains "bias": the biases are the same for every text. Assign to
`strongest` the remaining pair with the largest absolute contribution: the component on the query side, the one
on the key side, and the number.""",
    asks="strongest",
    draw=_weight,
    solution="""\
trace = model.inspect(weight_text)
head = trace.block[weight_block].head[weight_head]
parts = head.why(query_position, key_position).top(1000)
strongest = next(part for part in parts if "bias" not in part[0] + part[1])""",
    visible="""\
query_part, key_part, contribution = strongest
assert isinstance(query_part, str) and isinstance(key_part, str)
assert float(contribution) != 0""",
)

BLANK = Exercise(
    name="why-this-blank",
    lecture="002",
    title="Why this blank?",
    points=4,
    text="""\
The model fills the blank after `blank_text` with its likeliest next token. Which earlier token decides it? For
each position but the last, set the token's `embedding` to zero (the position's own vector remains), and look at
the probability of the token that was predicted without any edit.

Assign to `decisive` the position at which this lowers the probability most; positions are counted from 0.""",
    asks="decisive",
    draw=lambda random: {"blank_text": blank_prompt(random)},
    solution="""\
trace = model.inspect(blank_text)
predicted = trace.logits[-1].argmax()
n = len(trace.tokens) - 1
batch = model.inspect([blank_text] * n)
embedding = batch["embedding"].clone()
embedding[range(n), range(n)] = 0  # text i lacks token i
left = batch.edit({"embedding": embedding}).logits[:, -1].softmax(-1)[:, predicted]
decisive = int(left.argmin())""",
    visible="""\
assert isinstance(decisive, int)
assert 0 <= decisive < len(model.inspect(blank_text).tokens) - 1""",
)

EXERCISES = (SKIP_GRAM, CAUSAL_WEIGHTS, EXPLAIN, BLANK)
