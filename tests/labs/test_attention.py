"""The lectures' numbers."""

import math

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


def exponentials(n, score, base=math.e):
    """The weight of a score among n scores of 0."""
    return base**score / (base**score + n)


def test_weight_on_a_1_falls_as_zeros_are_added_and_longer_keys_restore_it():
    table = clearhead.lab("attention").part("weight on a single 1")
    counts = [1, 3, 10, 30, 100, 300, 1000]
    assert [row.split()[0] for row in table.rows] == [str(n) for n in counts]
    assert table.columns == ["keys as they are", "keys times 10"]
    for n, (plain, boosted) in zip(counts, table.values, strict=True):
        assert plain == pytest.approx(exponentials(n, 1))
        assert boosted == pytest.approx(exponentials(n, 10))
    assert table.values[1] == pytest.approx([0.47537, 0.99986], abs=5e-6)  # 0 0 1 0, as in the lecture
    assert table.values[4][0] < 0.027
    assert table.values[-1][1] > 0.95
    by_three = clearhead.lab("attention", base="3").part("weight on a single 1").values
    assert by_three[1] == pytest.approx([1 / 2, exponentials(3, 10, base=3)])


@pytest.mark.parametrize("zeros", [100, 1000])
def test_long_sequences_are_listed_by_runs(zeros):
    result = clearhead.lab("attention", sequence="1" + zeros * "0")
    expected = exponentials(zeros, 1)
    assert result.findings["weight on the target"] == pytest.approx(expected)
    steps = result.part("steps")
    assert steps.rows == ["1 at 0", f"0 at 1 to {zeros}"]
    assert steps.columns == ["digits", "score", "weight of each", "total weight"]
    assert steps.values[0] == pytest.approx([1, 1, expected, expected])
    assert steps.values[1] == pytest.approx([zeros, 0, (1 - expected) / zeros, 1 - expected])
    assert result.part("weights").values[0] == pytest.approx([expected, 1 - expected])
    assert result.part("result").values[0] == pytest.approx([1 - expected, expected])
    assert result.part("result").values[1] == pytest.approx([zeros / (zeros + 1), 1 / (zeros + 1)])


def test_sequences_beyond_the_limit_are_rejected():
    with pytest.raises(UserError, match=r"^`sequence` has 2001 characters: expected at most 2000$"):
        clearhead.lab("attention", sequence=2001 * "0")


def test_linear_attention_has_the_same_scores_with_w_on_either_side():
    """k W q with W = [[1, 2], [3, 4]], q = [0, 1] and keys [10, 0] and [0, 10], computed by hand."""
    result = clearhead.lab("attention", matrix="1 2 / 3 4", boost=10.0, sequence="01")
    assert result.part("W on either side").values == [
        ["[10, 0]", "[10, 20]", 20, "[2, 4]", 20],
        ["[0, 10]", "[30, 40]", 40, "[2, 4]", 40],
    ]
    assert [row[0] for row in result.part("steps").values] == [20, 40]
    assert result.findings["weight on the target"] == pytest.approx(1 / (1 + math.exp(-20)))
    by_three = clearhead.lab("attention", matrix="1 2 / 3 4", sequence="01", base="3")
    assert by_three.part("weights").values[0] == pytest.approx([9 / 90, 81 / 90])


def test_a_matrix_can_boost_instead_of_the_keys():
    boosted, linear = clearhead.lab("attention", boost=10.0), clearhead.lab("attention", matrix="10 0 / 0 10")
    assert linear.part("steps").values == boosted.part("steps").values


@pytest.mark.parametrize(
    "matrix", ["", "1 0", "1 0 / 0", "1 0 / 0 1 / 1 1", "a b / c d", "nan 0 / 0 1", "1e9 0 / 0 1"]
)
def test_other_matrices_are_rejected(matrix):
    with pytest.raises(
        UserError, match="expected two rows of two numbers from -100 to 100, such as 1 0 / 0 10"
    ):
        clearhead.lab("attention", matrix=matrix)


@pytest.mark.parametrize("sequence", ["", "012", "zero"])
def test_other_digits_are_rejected(sequence):
    with pytest.raises(UserError, match="expected digits 0 and 1"):
        clearhead.lab("attention", sequence=sequence)
