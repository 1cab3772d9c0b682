"""The rules for overfitting and for what would help, on made-up losses."""

import pytest

from clearhead.evaluation.overfitting import TrainingEvidence

FALLING = [(25, 4.0), (50, 3.5), (75, 3.2), (100, 3.0)]
RISING = [(25, 4.0), (50, 3.0), (75, 3.2), (100, 3.6)]


def advice(evidence):
    return [each.what for each in evidence.advice()]


def test_rising_validation_loss_is_overfitting():
    evidence = TrainingEvidence(RISING, 5000, 1000, 1000, 3.6, 2.0)
    assert evidence.overfits
    assert evidence.rise == pytest.approx(0.2)
    assert evidence.gap == pytest.approx(1 - 2 / 3.6)
    first, best, last = evidence.advice()
    assert first.what == "more text"
    assert first.because == "it has read its 1,000 tokens 5.0 times"
    assert best.because == "its validation loss was 3.0000 at step 50 and 3.6000 at the end"
    assert "more regularization" in last.what
    assert last.because == "its loss on its training text is 44% lower than on held-out text"
    assert evidence.reason == (
        "its validation loss was 3.0000 at step 50 and 3.6000 at the end; "
        "its loss is 2.0000 on its training text and 3.6000 on held-out text"
    )


@pytest.mark.parametrize("losses", [FALLING, RISING])
@pytest.mark.parametrize("trained_on", [2.0, 3.7, None])
def test_no_evidence_occurs_twice(losses, trained_on):
    items = TrainingEvidence(losses, 5000, 1000, 200, 3.6, trained_on, 2.0, 1.5).advice()
    parts = [part for each in items for part in each.because.split("; ")]
    assert len(parts) == len(set(parts))


def test_the_verdict_states_its_losses():
    fine = TrainingEvidence(FALLING, 5000, 1000, 1000, 3.0, 2.9)
    assert not fine.overfits
    assert fine.reason == "its loss is 2.9000 on its training text and 3.0000 on held-out text"


def test_a_gap_to_the_training_text_is_overfitting_even_if_the_validation_loss_falls():
    assert TrainingEvidence(FALLING, 1, 1, 1, 3.0, 2.6).overfits
    assert not TrainingEvidence(FALLING, 1, 1, 1, 3.0, 2.8).overfits


def test_falling_loss_calls_for_minutes_and_many_tokens_for_parameters():
    evidence = TrainingEvidence(FALLING, 20_000, 10_000, 1000, 3.0, 2.9)
    assert evidence.fall == pytest.approx(1 - 3.0 / 3.2)
    assert advice(evidence) == ["more training time", "a larger model"]
    assert advice(TrainingEvidence(FALLING, 10_000, 10_000, 1000, 3.0, 2.9)) == ["more training time"]
    flat = [(75, 3.01), (100, 3.0)]
    assert advice(TrainingEvidence(flat, 10_000, 10_000, 1000, 3.0, 2.9)) == []


def test_a_run_without_validation_has_no_rise():
    evidence = TrainingEvidence([], 10, 10, 10)
    assert (evidence.rise, evidence.gap, evidence.fall, evidence.overfits) == (None, None, None, False)
    assert evidence.reason == ""


@pytest.mark.parametrize("losses", [FALLING, RISING])
def test_a_better_pretrained_model_calls_for_fine_tuning(losses):
    """Listed after what helps against overfitting, if the model overfits."""
    better = TrainingEvidence(losses, 5000, 1000, 1000, 3.6, 3.5, 2.0, 1.5)
    place = 3 if better.overfits else 0
    found = better.advice()
    tuning = found.pop(place)
    assert "--from smollm2" in tuning.what
    assert tuning.because.startswith("before any fine-tuning, SmolLM2 needs 1.5000 bits per byte")
    same = TrainingEvidence(losses, 5000, 1000, 1000, 3.6, 3.5, 2.0, 1.9)
    assert found == same.advice() == TrainingEvidence(losses, 5000, 1000, 1000, 3.6, 3.5).advice()
