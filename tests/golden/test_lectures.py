"""The lectures' numbers, each computed with the package's functions."""

import math

import pytest
import torch
from torch import Tensor

from clearhead.model.attention_steps import attend, compare, divide, mask, mix, project, softmax
from clearhead.model.lectures import (
    head_as_loops,
    head_as_matrices,
    linear_attention,
    query_attention,
    simplest_attention,
)
from clearhead.model.mask import causal_matrix

ZERO, ONE = [1.0, 0.0], [0.0, 1.0]
IDENTITY = torch.eye(2, dtype=torch.float64)


def sequence(digits: str) -> Tensor:
    return torch.tensor([ONE if digit == "1" else ZERO for digit in digits], dtype=torch.float64)


def near(value: Tensor, expected: object, digits: int = 5) -> bool:
    aim = torch.tensor(expected, dtype=torch.float64)
    return value.shape == aim.shape and bool((value - aim).abs().max() < 0.5 * 10**-digits)


QUERY = torch.tensor(ONE, dtype=torch.float64)


def test_single_query_finds_the_digit_1():
    keys = sequence("0010")
    scores, weights, result = query_attention(QUERY, keys, keys)
    assert scores.tolist() == [0, 0, 1, 0]
    assert near(weights, [0.17488, 0.17488, 0.47537, 0.17488])
    assert near(result, [0.52463, 0.47537])


def test_base_3_equals_scaling_scores_by_log_3():
    keys = sequence("0010")
    _, weights, result = query_attention(QUERY * math.log(3), keys, keys)
    assert near(weights, [1 / 6, 1 / 6, 1 / 2, 1 / 6], 12)
    assert near(result, [1 / 2, 1 / 2], 12)


def test_zero_query_gives_a_plain_average():
    keys = sequence("0010")
    _, weights, result = query_attention(torch.zeros(2, dtype=torch.float64), keys, keys)
    assert near(weights, [1 / 4] * 4, 12)
    assert near(result, [3 / 4, 1 / 4], 12)


def test_sequence_without_a_1_gives_a_plain_average():
    keys = sequence("0000")
    _, weights, result = query_attention(QUERY, keys, keys)
    assert near(weights, [1 / 4] * 4, 12)
    assert near(result, [1, 0], 12)


@pytest.mark.parametrize("way", ["boosted keys", "linear attention"])
def test_boost_makes_attention_nearly_certain(way):
    e, boost = sequence("0010"), 10 * IDENTITY
    if way == "boosted keys":
        scores, weights, _ = query_attention(QUERY, project(e, boost), e)
    else:
        scores = linear_attention(QUERY, e, boost)
        weights = softmax(scores)
    assert scores.tolist() == [0, 0, 10, 0]
    assert near(weights[2], 0.99986)


def test_self_attention_with_every_query_looking_for_1():
    e = sequence("0010")
    W_Q = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    queries, keys = project(e, W_Q), project(e, 10 * IDENTITY)
    assert queries.tolist() == [ONE] * 4
    assert keys.tolist() == (10 * e).tolist()
    assert compare(queries, keys).tolist() == [[0, 0, 10, 0]] * 4


@pytest.mark.parametrize(
    ("queries", "scores", "weights"),
    [
        ([ZERO, ONE], [[10, 0], [0, 10]], [[0.99995, 0.00005], [0.00005, 0.99995]]),
        ([ONE, ONE], [[0, 10], [0, 10]], [[0.00005, 0.99995], [0.00005, 0.99995]]),
    ],
)
def test_two_tokens_with_boosted_keys(queries, scores, weights):
    e = sequence("01")
    S = compare(torch.tensor(queries, dtype=torch.float64), project(e, 10 * IDENTITY))
    A = softmax(S)
    assert S.tolist() == scores
    assert near(A, weights)
    assert near(mix(A, e), weights)  # the embeddings are the unit vectors


@pytest.fixture
def eight_words():
    generator = torch.Generator().manual_seed(8)
    return [torch.randn(8, 32, generator=generator, dtype=torch.float64)] + [
        torch.randn(32, 32, generator=generator, dtype=torch.float64) / 32**0.5 for _ in range(3)
    ]


def test_one_causal_head_over_eight_tokens(eight_words):
    x, W_Q, W_K, W_V = eight_words
    Q, K, V = project(x, W_Q), project(x, W_K), project(x, W_V)
    S = compare(Q, K)
    assert Q.shape == K.shape == (8, 32)
    assert S.shape == (8, 8)
    P = softmax(mask(divide(S, 32), causal_matrix(8, 8)))
    assert torch.equal(P, P.tril())
    assert near(P.sum(1), [1.0] * 8, 12)
    output = mix(P, V)
    assert torch.allclose(output[1], P[1, 0] * V[0] + P[1, 1] * V[1], rtol=0, atol=1e-12)
    assert torch.equal(output, head_as_matrices(*eight_words))


def test_loops_and_matrices_give_the_same_result(eight_words):
    assert torch.allclose(head_as_loops(*eight_words), head_as_matrices(*eight_words), rtol=0, atol=1e-12)


def test_simplest_attention_weighs_by_similarity():
    x = sequence("01")
    # The second token sees [1,0] with score 0 and itself with score 1.
    e = math.e
    assert near(simplest_attention(x), [[1, 0], [1 / (1 + e), e / (1 + e)]], 12)


def test_attend_matches_the_full_formula():
    generator = torch.Generator().manual_seed(1)
    Q, K, V = (torch.randn(5, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    by_hand = torch.zeros(5, 4, dtype=torch.float64)
    for i in range(5):
        exponents = [math.exp(float(Q[i] @ K[j]) / 2) for j in range(5)]
        for j in range(5):
            by_hand[i] += exponents[j] / sum(exponents) * V[j]
    assert torch.allclose(attend(Q, K, V), by_hand, rtol=0, atol=1e-12)
