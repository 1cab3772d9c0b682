"""Without position information, a sentence is a bag of words."""

import pytest

import clearhead
from clearhead.errors import UserError


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary"])
def test_order_matters_only_with_position_information(seed, position):
    result = clearhead.lab("position", position=position, seed=seed)
    assert result.findings["largest change without position"] < 5e-6  # 3e-7 to 1e-6 across seeds
    assert result.findings["mean change with position"] > 0.05
    (table,) = result.parts
    assert sorted(result.findings["shuffled"].split()) == sorted(result.settings["sentence"].split())
    for row, (without, with_position) in zip(table.rows, table.values, strict=True):
        assert without < 5e-6, row
        assert with_position > 1e-3, row


def test_rows_show_old_and_new_positions():
    result = clearhead.lab("position", sentence="a b c d", seed=1)
    shuffled = result.findings["shuffled"].split()
    went = [f"{word}, {i} → {shuffled.index(word)}" for i, word in enumerate("abcd")]
    assert result.parts[0].rows == went


def test_causal_models_encode_some_order_without_positions():
    """A word's vector is unchanged only if the same set of words precedes it."""
    result = clearhead.lab("position", sentence="a b c d e f", causal=True, seed=0)
    before, after = "abcdef", result.findings["shuffled"].split()
    for row, (without, _) in zip(result.parts[0].rows, result.parts[0].values, strict=True):
        word = row[0]
        same = set(before[: before.index(word)]) == set(after[: after.index(word)])
        assert (without < 5e-6) == same, row


def test_sentences_of_one_distinct_word_are_rejected():
    with pytest.raises(UserError, match="two different words"):
        clearhead.lab("position", sentence="buffalo buffalo")
