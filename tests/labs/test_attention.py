"""The lectures' numbers."""

import pytest

import clearhead
from clearhead.errors import UserError


def weights(**settings):
    return clearhead.lab("attention", **settings).part("weights").values[0]


def test_weights_with_base_e():
    result = clearhead.lab("attention")
    assert weights() == pytest.approx([0.17488, 0.17488, 0.47537, 0.17488], abs=5e-6)
    assert result.part("result").values[0] == pytest.approx([0.52463, 0.47537], abs=5e-6)
    assert result.part("result").values[1] == [0.75, 0.25]
    assert [row[0] for row in result.part("steps").values] == [0, 0, 1, 0]


def test_weights_with_the_lectures_base_of_3():
    assert weights(base="3") == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6])
    assert clearhead.lab("attention", base="3").part("result").values[0] == pytest.approx([0.5, 0.5])


def test_weights_are_uniform_when_nothing_matches():
    assert weights(sequence="0000") == [0.25] * 4
    assert clearhead.lab("attention", sequence="0000").part("result").values[0] == [1, 0]


def test_boosted_keys():
    result = clearhead.lab("attention", boost=10.0)
    assert [row[0] for row in result.part("steps").values] == [0, 0, 10, 0]
    assert result.findings["weight on the target"] == pytest.approx(0.99986, abs=5e-6)


@pytest.mark.parametrize("sequence", ["", "012", "zero"])
def test_other_digits_are_rejected(sequence):
    with pytest.raises(UserError, match="expected digits 0 and 1"):
        clearhead.lab("attention", sequence=sequence)
