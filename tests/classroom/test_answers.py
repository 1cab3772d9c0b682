"""Answers as plain data: tolerance, types, and values that only pretend to be equal."""

import numpy as np
import pytest
import torch

from clearhead.classroom.answers import MOST_NUMBERS, decode, encode, plain, same, shown


class Equal(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((2, 1), [2, 1]),
        (torch.tensor([0.5, 0.25]), [0.5, 0.25]),
        (np.array([[1.0]]), torch.tensor([[1.0]])),
        (0.33334, 1 / 3),
        ([("a", "b")], [["a", "b"]]),
        (1, 1.0),
        (2.0, 2),
        (" the ", "the"),
        (np.float32(0.5), 0.5),
    ],
)
def test_equal_answers_agree(given, expected):
    assert same(given, expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2], [2, 1]),
        ([1, 2, 3], [1, 2]),
        (0.34, 1 / 3),
        (float("nan"), 1.0),
        (Equal(3), 4.0),
        (None, 0),
        (..., 0),
        ("1", 1),
        (2.5, 2),
        (10**400, 0.5),
        ({"a": 1}, [1]),
        (object(), 1),
        (lambda: 1, 1),
    ],
)
def test_other_answers_do_not(given, expected):
    assert not same(given, expected)


def test_huge_and_deep_answers_are_rejected():
    with pytest.raises(TypeError, match="too large"):
        plain(torch.zeros(MOST_NUMBERS + 1))
    nested = []
    nested.append(nested)
    with pytest.raises(TypeError, match="too large"):
        plain(nested)


def test_arguments_survive_json():
    number, words, tensor = decode(encode((3, ["a", "b"], torch.tensor([[0.1, 2.0]]))))
    assert (number, words) == (3, ["a", "b"])
    assert torch.equal(tensor, torch.tensor([[0.1, 2.0]]))


def test_shown_answers_are_one_short_line():
    assert shown([1 / 3, 2]) == "[0.3333, 2]"
    assert shown("\x1b[31m\n" * 100).isprintable()
    assert len(shown([1.5] * 1000)) <= 60
    nested: list = []
    for _ in range(5000):
        nested = [nested]
    assert shown(nested) == "lists nested too deeply"
