"""In a causal model, a pronoun's vector cannot depend on the adjective; in a bidirectional one, it can."""

from dataclasses import replace

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.language_model import load


def test_weights_are_summed_over_all_heads(model):
    result = clearhead.lab("pronoun", model, seeds=0)
    for row, adjective in enumerate(("tired", "wide")):
        trace = model.inspect(f"The chicken didn't cross the road because it was too {adjective}.")
        chicken, road, it, last = (trace.position_of(word) for word in ("chicken", "road", "it", adjective))
        for part, looking in (("from the last word", last), ("from the pronoun", it)):
            weights = trace["block.0.head.0.weights"][looking]
            expected = [weights[chicken], weights[road], weights[chicken] - weights[road]]
            assert result.part(part).values[row] == pytest.approx(
                [each.item() for each in expected], abs=1e-6
            )
    assert result.findings["largest difference at it between the two sentences"] < 1e-6
    assert result.part("from the last word").values[0] != result.part("from the last word").values[1]


def test_invalid_words_and_missing_model_are_rejected(model, monkeypatch):
    with pytest.raises(UserError, match="'hen' is not a word"):
        clearhead.lab("pronoun", model, seeds=0, one="hen")
    with pytest.raises(UserError, match="'road' comes after the query position"):
        clearhead.lab("pronoun", model, seeds=0, pronoun="chicken")
    with pytest.raises(UserError, match="both 'tired'"):
        clearhead.lab("pronoun", model, seeds=0, second="tired")
    monkeypatch.setattr("clearhead.labs.catalog._is_here", lambda _: False)
    with pytest.raises(UserError, match="no model"):
        clearhead.lab("pronoun", seeds=0)


def test_bidirectional_models_can_be_inspected(model):
    model.network.config = replace(model.config, causal=False)
    found = clearhead.lab("pronoun", model, seeds=0).findings
    assert found["largest difference at it between the two sentences"] > 1e-6


def test_tired_attends_to_chicken_and_wide_to_road_in_the_built_in_model():
    found = clearhead.lab("pronoun", seeds=0).findings
    assert found["tired: attention to chicken minus road"] > 0
    assert found["wide: attention to chicken minus road"] < 0
    assert found["largest difference at it between the two sentences"] < 1e-5


def test_tired_attends_to_chicken_and_wide_to_road(smollm2):
    found = clearhead.lab("pronoun", smollm2, seeds=0).findings
    assert round(found["tired: attention to chicken minus road"], 2) == 1.28
    assert round(found["wide: attention to chicken minus road"], 2) == -0.73
    assert found["largest difference at it between the two sentences"] < 1e-5


@pytest.fixture(scope="module")
def learned(model_folder):
    """The short mode: one seed and fewer than half of the steps."""
    return clearhead.lab("pronoun", load(model_folder, "cpu"), seeds=1, steps=120)


@pytest.fixture(scope="module")
def at_it(learned):
    table = learned.part("what is encoded at the pronoun, in stories")
    assert table.rows == ["bidirectional, seed 0", "causal, seed 0"]
    return [dict(zip(table.columns, row, strict=True)) for row in table.values]


@pytest.mark.slow
def test_bidirectional_model_encodes_the_antecedent_at_the_pronoun(at_it):
    both, _ = at_it
    assert both["accuracy at the pronoun"] > 0.85
    assert both["correct side"] > 0.9
    assert both["attention"] > 0.5
    assert both["flipped"] > 0.8
    assert both["probe"] > 0.9
    assert both["difference"] > 1


@pytest.mark.slow
def test_causal_model_knows_the_antecedent_only_at_the_end(at_it):
    _, back = at_it
    assert back["difference"] == 0
    assert back["accuracy at the pronoun"] <= 0.5
    assert back["probe"] == 0.5
    assert back["flipped"] == 0
    assert back["attention"] == pytest.approx(0, abs=1e-6)
    assert back["accuracy at the end"] > 0.85


@pytest.mark.slow
def test_attention_from_it_matches_the_lecture(learned):
    table = learned.part("attention from it, summed over heads")
    tired, wide, back, same = (dict(zip(table.columns, row, strict=True)) for row in table.values)
    assert tired["chicken"] - tired["road"] > wide["chicken"] - wide["road"]
    assert back == same
    assert back["adjective"] == 0


@pytest.mark.slow
def test_accuracy_improves_during_training(learned):
    part = learned.part("predicts the antecedent")
    assert part.x[0] == 0
    assert part.x[-1] == 120
    for line in ("bidirectional, at the pronoun", "causal, at the end"):
        assert part.lines[line][0] < 0.2
        assert part.lines[line][-1] > 0.85


@pytest.mark.slow
def test_masking_alone_does_not_teach_the_antecedent():
    found = clearhead.lab("pronoun", seeds=1, steps=40, asked=False).findings
    assert found["bidirectional: accuracy at the pronoun"] < 0.2
    assert abs(found["bidirectional: attention to the antecedent minus that to the other noun"]) < 0.1
    assert "attention to chicken minus road" in " ".join(found)  # in the built-in model


@pytest.mark.slow
def test_results_are_reproducible_with_a_range_over_seeds():
    made = [clearhead.lab("pronoun", seeds=2, steps=1) for _ in range(2)]
    assert made[0] == made[1]
    spread = made[0].part("predicts the antecedent").spread
    assert all(low <= high for line in spread.values() for low, high in line)


def test_interrupt_stops_training_and_restores_thread_count():
    def leave():
        raise KeyboardInterrupt

    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        clearhead.lab("pronoun", watch=leave)
    assert torch.get_num_threads() == threads
