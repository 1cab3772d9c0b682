"""Sampling tokens by the rules, with each sample independent of the others."""

import math

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.sampler import Sampler, make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.text.tokenizer import Tokenizer

# Four letters and the end token; probabilities 0.5, 0.25, 0.15, 0.1, not in order, and almost 0 for the end.
LETTERS = Tokenizer.train("char", ["abcd"])
LOGITS = torch.tensor([0.15, 0.5, 0.1, 0.25, 1e-30]).log()
A, B, C, D, END = range(5)


def sampler(prompt=(), seed=0, sample=0, **settings) -> Sampler:
    return Sampler(Sampling(**settings), LETTERS, 5, prompt, seed, sample)


def shares(count: int = 4000, **settings) -> list[float]:
    """Return the share of each letter among the samples when every step has the same logits."""
    one = sampler(**settings)
    ids = [one.sample(LOGITS).id for _ in range(count)]
    return [ids.count(i) / count for i in range(4)]


def test_tokens_are_sampled_in_proportion_to_their_probability():
    assert shares(temperature=1) == pytest.approx([0.15, 0.5, 0.1, 0.25], abs=0.03)
    # Temperature 0.5 squares the probabilities.
    squares = [p**2 / (0.15**2 + 0.5**2 + 0.1**2 + 0.25**2) for p in (0.15, 0.5, 0.1, 0.25)]
    assert shares(temperature=0.5) == pytest.approx(squares, abs=0.03)
    assert shares(temperature=1, top_k=2) == pytest.approx([0, 2 / 3, 0, 1 / 3], abs=0.03)


def test_logit_bias_is_added_to_the_logit():
    # Twice as likely, three times as likely, and never; by text and by id.
    bias = {"a": math.log(2), 2: math.log(3), "b": -100}
    whole = 2 * 0.15 + 3 * 0.1 + 0.25
    expected = [0.3 / whole, 0, 0.3 / whole, 0.25 / whole]
    assert shares(temperature=1, logit_bias=bias) == pytest.approx(expected, abs=0.03)
    assert shares(count=50, temperature=1, logit_bias={D: 100}) == [0, 0, 0, 1]
    assert sampler(temperature=0, logit_bias={"b": -math.inf}).sample(LOGITS).id == D


def greedy(count: int, prompt=(), **settings) -> str:
    one = sampler(prompt, temperature=0, **settings)
    return LETTERS.decode([one.sample(LOGITS).id for _ in range(count)])


def test_temperature_zero_selects_the_most_likely_token():
    assert greedy(3) == "bbb"
    # Raised to the power of 3, the probabilities are 0.125, 0.016, 0.003 and 0.001.
    assert greedy(4, repetition_penalty=3.0) == "bdab"


def test_only_the_repetition_penalty_counts_the_prompt():
    assert greedy(1, [B], repetition_penalty=9.0) == "d"
    assert greedy(1, [B, B, B], presence_penalty=2.0, frequency_penalty=2.0) == "b"


def test_presence_penalty_applies_once_and_frequency_penalty_each_time():
    # b leads d by log 2 = 0.69, which is less than 0.7 and less than 2 · 0.4.
    assert greedy(4, presence_penalty=0.7) == "bdbb"
    assert greedy(4, presence_penalty=0.6) == "bbbb"
    assert greedy(5, frequency_penalty=0.4) == "bbdbd"
    assert greedy(4, frequency_penalty=-0.4) == "bbbb"


def test_logit_bias_is_applied_before_the_penalties():
    """The sign of the biased logit determines whether the repetition penalty divides or multiplies."""
    logits = torch.tensor([-1.0, 1.2, -9.0, -9.0, -9.0])
    one = sampler([A], temperature=0, repetition_penalty=3.0, logit_bias={A: 4.0})
    assert one.sample(logits).id == B  # (-1 + 4) / 3 = 1; -1 * 3 + 4 = 1 as well, but 4 - 1 / 3 = 3.7
    assert sampler(temperature=0, repetition_penalty=3.0, logit_bias={A: 4.0}).sample(logits).id == A


def test_log_probabilities_are_those_of_the_model():
    """The sampling rules do not affect them: b is never sampled here, but is reported as the most likely."""
    one = sampler(temperature=0.3, top_k=1, logit_bias={B: -100}, log_probabilities=2)
    for _ in range(3):
        drawn = one.sample(LOGITS + 7)
        assert drawn.id == D
        assert drawn.log_probability == pytest.approx(math.log(0.25))
        assert [i for i, _ in drawn.alternatives] == [B, D]
        assert [p for _, p in drawn.alternatives] == pytest.approx([math.log(0.5), math.log(0.25)])
    assert sampler(log_probabilities=0).sample(LOGITS).alternatives == ()
    assert sampler(log_probabilities=0).sample(LOGITS).log_probability is not None
    assert len(sampler(log_probabilities=20).sample(LOGITS).alternatives) == 5
    assert sampler().sample(LOGITS).log_probability is None


def test_sampling_finishes_after_an_end_token():
    two = Tokenizer(LETTERS._inner, LETTERS.config, ends=[C])
    for end in (END, C):
        one = Sampler(Sampling(0, logit_bias={end: 100}), two, 5)
        drawn = one.sample(LOGITS)
        assert (drawn.id, drawn.last, one.finished) == (end, True, True)
        assert one.sample(LOGITS).last
    one = Sampler(Sampling(0), two, 5)
    assert not one.sample(LOGITS).last


def test_sample_does_not_depend_on_the_number_of_samples():
    sampling = Sampling(1.0, frequency_penalty=0.5, regex="[abcd]{20}")
    alone = Sampler(sampling, LETTERS, 5, [A], 7, 2)
    together = make_samplers(sampling, LETTERS, 5, [A], 7, 4)
    rows = [[each.sample(LOGITS).id for each in together] for _ in range(20)]
    columns = list(zip(*rows, strict=True))
    assert list(columns[2]) == [alone.sample(LOGITS).id for _ in range(20)]
    assert len(set(columns)) == 4
    assert all(each.finished for each in together)


def test_constraint_is_applied_before_everything_else():
    one = sampler(temperature=0, regex="[ac]{2}", logit_bias={B: 100})
    assert [one.sample(LOGITS).id, one.sample(LOGITS).id] == [A, A]
    assert one.finished


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": -1}, "seed = -1"),
        ({"seed": 2**32}, "seed = 4294967296"),
        ({"seed": 1.5}, "seed = 1.5"),
        ({"logit_bias": {5: 1.0}}, "`logit_bias` of 5: expected a token's text, or an id from 0 to 4"),
        ({"logit_bias": {-1: 1.0}}, "`logit_bias` of -1"),
        ({"logit_bias": {True: 1.0}}, "`logit_bias` of True"),
        ({"logit_bias": {"ab": 1.0}}, "'ab' is 2 tokens"),
        ({"logit_bias": {"é": 1.0}}, "LATIN SMALL LETTER E WITH ACUTE"),
    ],
    ids=str,
)
def test_invalid_settings_raise_at_construction(settings, words):
    with pytest.raises(UserError, match=words):
        sampler(**settings)


def test_raises_when_no_token_is_left_to_sample():
    one = sampler(regex="a", logit_bias={"a": -100})
    with pytest.raises(UserError, match="no token is left to sample"):
        one.sample(LOGITS)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0, 1])
def test_non_finite_logits_are_rejected(broken, temperature):
    with pytest.raises(UserError, match="a logit is infinite or not a number"):
        sampler(temperature=temperature).sample(torch.tensor([0.0, broken, 1.0, 0.0, 0.0]))


def test_logit_bias_accepts_special_tokens_by_name():
    assert sampler(temperature=0, logit_bias={"<|endoftext|>": 100}).sample(LOGITS).id == END
