import math

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.sampling import (
    Sampling,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    sample,
)

# Probabilities 0.5, 0.25, 0.15, 0.1, not in order.
LOGITS = torch.tensor([0.15, 0.5, 0.1, 0.25]).log()
NONE = torch.tensor([], dtype=torch.long)


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


def test_min_p():
    assert kept(keep_min_p(LOGITS, 0.4)) == [1, 3]
    assert kept(keep_min_p(LOGITS, 0.0)) == [0, 1, 2, 3]
    assert kept(keep_min_p(LOGITS, 1.0)) == [1]


def test_repetition_makes_words_less_likely_whatever_their_sign():
    logits = torch.tensor([2.0, -2.0, 1.0])
    assert penalise_repetition(logits, torch.tensor([0, 1, 0]), 2.0).tolist() == [1.0, -4.0, 1.0]


def draw(sampling: Sampling, seen: torch.Tensor = NONE, count: int = 4000) -> list[float]:
    generator = torch.Generator().manual_seed(0)
    words = [sample(LOGITS, sampling, seen, generator) for _ in range(count)]
    return [words.count(i) / count for i in range(4)]


def test_words_are_drawn_as_often_as_their_probability():
    assert draw(Sampling(temperature=1)) == pytest.approx([0.15, 0.5, 0.1, 0.25], abs=0.03)
    # Temperature 0.5 squares the probabilities.
    squares = [p**2 / (0.15**2 + 0.5**2 + 0.1**2 + 0.25**2) for p in (0.15, 0.5, 0.1, 0.25)]
    assert draw(Sampling(temperature=0.5)) == pytest.approx(squares, abs=0.03)
    assert draw(Sampling(temperature=1, top_k=2)) == pytest.approx([0, 2 / 3, 0, 1 / 3], abs=0.03)


def test_temperature_zero_takes_the_likeliest():
    assert draw(Sampling(temperature=0), count=5) == [0, 1, 0, 0]
    assert draw(Sampling(temperature=0, repetition_penalty=9.0), torch.tensor([1]), count=5) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": 0},
        {"top_p": 0},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"min_p": math.nan},
        {"repetition_penalty": 0},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError, match=next(iter(settings))):
        Sampling(**settings)
