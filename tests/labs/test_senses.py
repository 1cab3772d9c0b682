"""A word has one static vector, but many contextual ones."""

import pytest
import torch

import clearhead
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel

SENTENCES = {"one": "The dog ran / Anna saw the dog", "other": "A red dog / Tom has a dog / dog"}


def test_cosines_per_stage_match_the_trace(model):
    result = clearhead.lab("senses", model, word="dog", **SENTENCES)
    lines = result.part("block by block").lines
    pair = model.inspect("The dog ran").cosines("dog", model.inspect("A red dog"))[:, 0, 0]
    assert torch.allclose(torch.tensor(lines["the first two"]), pair)
    for values in lines.values():
        assert values[0] == pytest.approx(1)  # the embedding: the same vector in every sentence
        assert values[-1] < 0.9999
    table = next(part for part in result.parts if part.name.startswith("cosines"))
    cosines = torch.tensor(table.values)
    assert table.rows == ["The dog ran", "Anna saw the dog", "A red dog", "Tom has a dog", "dog"]
    between = cosines[:2, 2:].mean().item()
    assert result.findings["other sense, block.0.input"] == pytest.approx(between, abs=1e-5)
    points = next(part for part in result.parts if part.name.startswith("map"))
    assert points.groups == ["as in: The dog ran"] * 2 + ["as in: A red dog"] * 3


def test_recurrent_states_are_contextual(model):
    torch.manual_seed(0)
    config = RecurrentConfig("lstm", model.config.n_vocab, 64, n_block=2, d_model=16)
    recurrent = LanguageModel(Recurrent(config), model.tokenizer)
    found = clearhead.lab("senses", recurrent, word="dog", **SENTENCES).findings
    assert found["cosine between the first two, embedding"] == pytest.approx(1)
    assert found["cosine between the first two, block.1.state"] < 0.9999


@pytest.mark.slow
@pytest.mark.parametrize("word", ["bats", "bank"])
def test_static_recurrent_and_transformer_vectors_compared(word):
    """The short mode: one seed and half of the steps."""
    result = clearhead.lab("senses", word=word, seeds=1, steps=100)
    table = result.part("at the end")
    assert table.rows == ["static vectors", "LSTM, seed 0", "transformer, seed 0"]
    static, *contextual = table.values
    assert static[:3] == pytest.approx([1, 1, 1])
    assert static[3] is None
    for kind, (pair, same, other, nearest) in zip(("LSTM", "transformer"), contextual, strict=True):
        assert pair < 0.999
        assert same - other > 0.01, kind
        assert nearest >= 0.75, kind
        assert result.findings[f"{kind}: same sense minus other, lowest over seeds"] == pytest.approx(
            same - other
        )
        points = result.part(f"map, {kind} trained here")
        assert len(points.places) == 8
    assert result.findings["smollm2 is not installed; to pull it"] == "clearhead pull smollm2"


def test_given_model_is_added_to_the_comparison(model):
    table = clearhead.lab("senses", model, seeds=2, steps=1).part("at the end")
    assert table.rows[-1] == "the model"
    assert len(table.rows) == 6
    cosines = model.inspect("I'm scared of bats").cosines("bats", model.inspect("I swing bats"))
    assert table.values[-1][0] == pytest.approx(cosines[-1, 0, 0].item(), abs=1e-5)


def test_missing_model_and_words_are_rejected(model):
    with pytest.raises(UserError, match="no model"):
        clearhead.lab("senses", word="dog", **SENTENCES)
    with pytest.raises(UserError, match="bats or bank"):
        clearhead.lab("senses", model, word="dog")
    with pytest.raises(UserError, match="is not a word of this text"):
        clearhead.lab("senses", model, word="dog", one="The dog ran / Anna sat", other="A dog")


@pytest.mark.parametrize(
    ("word", "cosines", "difference"), [("bats", (1.0, 0.90, 0.87), 0.02), ("bank", (1.0, 0.74, 0.62), 0.08)]
)
def test_senses_of_bats_and_bank_in_smollm2(smollm2, word, cosines, difference):
    found = clearhead.lab("senses", smollm2, word=word, seeds=0).findings
    stages = ("embedding", "block.27.input", "final")
    assert tuple(round(found[f"cosine between the first two, {stage}"], 2) for stage in stages) == cosines
    assert found["same sense, block.27.input"] > found["other sense, block.27.input"] + difference
