"""Each sampling rule on four logits, by itself and compared with the one in transformers."""

import math

import numpy as np
import pytest
import torch
import transformers
from hypothesis import assume, given
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.generate.sampler import (
    filter_logits,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalize_counts,
    penalize_repetition,
)
from clearhead.generate.sampling import Sampling

# Probabilities 0.5, 0.25, 0.15, 0.1, not in order.
LOGITS = torch.tensor([0.15, 0.5, 0.1, 0.25]).log()


def kept(logits: torch.Tensor) -> list[int]:
    return [i for i, logit in enumerate(logits.tolist()) if logit > -math.inf]


def test_top_k():
    assert kept(keep_top_k(LOGITS, 2)) == [1, 3]
    assert kept(keep_top_k(LOGITS, 9)) == [0, 1, 2, 3]


def test_top_p():
    assert kept(keep_top_p(LOGITS, 0.4)) == [1]
    assert kept(keep_top_p(LOGITS, 0.6)) == [1, 3]
    assert kept(keep_top_p(LOGITS, 0.8)) == [0, 1, 3]
    assert kept(keep_top_p(LOGITS, 1.0)) == [0, 1, 2, 3]
    assert kept(keep_top_p(LOGITS, 1e-9)) == [1]
    assert kept(keep_top_p(LOGITS, 5e-324)) == [1]


@pytest.mark.parametrize("p", [5e-324, 1e-40, 1e-9, 0.5, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("n_vocab", [1, 3, 257, 50_257])
def test_top_p_keeps_at_least_one_of_equally_likely_tokens(p, n_vocab):
    assert len(kept(keep_top_p(torch.zeros(n_vocab), p))) >= 1


def test_min_p():
    assert kept(keep_min_p(LOGITS, 0.4)) == [1, 3]
    assert kept(keep_min_p(LOGITS, 0.0)) == [0, 1, 2, 3]
    assert kept(keep_min_p(LOGITS, 1.0)) == [1]


def test_repetition_penalty_lowers_logits_of_either_sign():
    logits = torch.tensor([2.0, -2.0, 1.0, -math.inf])
    seen = torch.tensor([True, True, False, True])
    assert penalize_repetition(logits, seen, 2.0).tolist() == [1.0, -4.0, 1.0, -math.inf]


def test_presence_penalty_counts_once_and_frequency_penalty_each_time():
    logits = torch.tensor([2.0, -2.0, 1.0, 0.0])
    counts = torch.tensor([3.0, 1.0, 0.0, 2.0])
    assert penalize_counts(logits, counts, 0.5, 0.0).tolist() == [1.5, -2.5, 1.0, -0.5]
    assert penalize_counts(logits, counts, 0.0, 0.5).tolist() == [0.5, -2.5, 1.0, -1.0]
    assert penalize_counts(logits, counts, -1.0, 2.0).tolist() == [-3.0, -3.0, 1.0, -3.0]


def test_each_filter_narrows_the_result_of_the_previous_one():
    # Of the two most likely tokens, the first has probability 2/3. With both filters, only that token remains;
    # with top_p alone, two do.
    assert kept(filter_logits(LOGITS, Sampling(1.0, top_k=2, top_p=0.6))) == [1]
    assert kept(filter_logits(LOGITS, Sampling(1.0, top_p=0.6))) == [1, 3]
    # Temperature 0.5 squares the probabilities: 0.5 becomes 0.72, and 0.25 becomes a quarter of that.
    assert kept(filter_logits(LOGITS, Sampling(0.5, top_p=0.7))) == [1]
    assert kept(filter_logits(LOGITS, Sampling(0.5, min_p=0.3))) == [1]
    assert kept(filter_logits(LOGITS, Sampling(1.0, min_p=0.3))) == [0, 1, 3]


# Multiples of 1/8, so that distinct logits stay distinct after subtracting the maximum.
ROWS = st.lists(st.integers(-64, 64), min_size=4, max_size=9).map(lambda row: torch.tensor(row) / 8)


@given(ROWS, st.floats(0.05, 4), st.integers(1, 9), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_filters_keep_the_same_tokens_as_transformers(logits, temperature, k, p, least):
    ids = torch.zeros(1, 1, dtype=torch.long)
    warpers = transformers.LogitsProcessorList(
        [
            transformers.TemperatureLogitsWarper(temperature),
            transformers.TopKLogitsWarper(k),
            transformers.TopPLogitsWarper(p),
            transformers.MinPLogitsWarper(least),
        ]
    )
    # A token exactly at a rule's threshold may be rounded to either side.
    likely = keep_top_k(logits / temperature, k).softmax(-1).sort(descending=True).values
    assume(min(abs(likely.cumsum(-1) - p)) > 1e-4)
    assume(min(abs(likely / likely[0] - least)) > 1e-4)
    theirs = warpers(ids, logits[None])[0].softmax(-1)
    ours = filter_logits(logits, Sampling(temperature, top_k=k, top_p=p, min_p=least)).softmax(-1)
    # Where top_p cuts between equally likely tokens, they may be sorted in either order.
    assert torch.allclose(ours.sort().values, theirs.sort().values, atol=1e-4)


@given(ROWS, st.lists(st.integers(0, 3), min_size=1), st.floats(0.1, 5))
def test_repetition_penalty_matches_transformers(logits, ids, penalty):
    seen = torch.zeros(len(logits), dtype=torch.bool)
    seen[ids] = True
    processor = transformers.RepetitionPenaltyLogitsProcessor(penalty)
    theirs = processor(torch.tensor([ids]), logits[None].clone())[0]
    assert torch.allclose(penalize_repetition(logits, seen, penalty), theirs, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"temperature": "hot"},
        {"temperature": None},
        {"temperature": True},
        {"top_k": 0},
        {"top_k": 2.5},
        {"top_k": math.inf},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_p": math.nan},
        {"min_p": -0.1},
        {"min_p": math.nan},
        {"repetition_penalty": 0},
        {"repetition_penalty": -1.0},
        {"repetition_penalty": math.inf},
        {"presence_penalty": math.nan},
        {"presence_penalty": 2.5},
        {"frequency_penalty": -math.inf},
        {"frequency_penalty": "much"},
        {"log_probabilities": -1},
        {"log_probabilities": 21},
        {"log_probabilities": 1.5},
        {"log_probabilities": True},
        {"min_p": "0.5"},
        {"logit_bias": {3: math.nan}},
        {"logit_bias": {3: math.inf}},
        {"logit_bias": {3: 101}},
        {"logit_bias": {3: "x"}},
        {"logit_bias": [3]},
    ],
    ids=str,
)
def test_invalid_settings_are_rejected(settings):
    with pytest.raises(UserError, match=f"{next(iter(settings))}`? .*expected"):
        Sampling(**settings)


def test_numpy_numbers_are_accepted():
    Sampling(np.float32(0.5), top_k=np.int64(3), top_p=np.float64(0.5), logit_bias={1: np.float32(2)})


def test_only_one_grammar_can_be_given():
    with pytest.raises(UserError, match="both given"):
        Sampling(regex="a", json_schema={})
