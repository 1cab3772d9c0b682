"""Without position information, a sentence is a bag of words."""

import pytest

import clearhead
from clearhead.errors import UserError


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary"])
def test_order_matters_only_with_position_information(seed, position):
    result = clearhead.lab("position", position=position, seed=seed)
    assert result.findings["largest change without positions"] < 5e-6  # 3e-7 to 1e-6 across seeds
    assert result.findings["mean change with positions"] > 0.05
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


@pytest.mark.parametrize("seed", range(4))  # seeds 0 and 2 leave the first words in their places
def test_in_a_causal_model_a_word_keeps_its_vector_only_after_the_same_words(seed):
    result = clearhead.lab("position", sentence="a b c d", causal=True, seed=seed)
    before, after = "abcd", "".join(result.findings["shuffled"].split())
    kept = [before[: i + 1] == after[: i + 1] for i in range(4)]
    values = result.parts[0].values
    assert [without < 5e-6 for without, _ in values] == kept
    assert result.findings["words that keep their vector without positions"] == sum(kept)
    assert [without > 1e-3 for without, _ in values] == [not same for same in kept]


def test_without_causal_attention_every_word_keeps_its_vector():
    assert clearhead.lab("position").findings["words that keep their vector without positions"] == 9


def test_sentences_of_one_distinct_word_are_rejected():
    with pytest.raises(UserError, match="two different words"):
        clearhead.lab("position", sentence="buffalo buffalo")
