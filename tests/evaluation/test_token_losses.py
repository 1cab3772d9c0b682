"""The loss of each token against `model.logits`, and its means against plain loops."""

from collections import Counter, defaultdict

import numpy as np
import pytest
import tokenizers
import torch

from clearhead.errors import UserError
from clearhead.evaluation.baselines import compressed_bits
from clearhead.evaluation.calibration import Calibration
from clearhead.evaluation.run_text import ReportText
from clearhead.evaluation.token_losses import FREQUENCIES, measure_tokens
from clearhead.language_model import LanguageModel
from clearhead.text.corpus import Document
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.start_token import StartToken
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens
from clearhead.training.position_loss import measure_positions


def test_losses_that_are_not_numbers_are_an_error(model, text):
    ids = np.array(model.tokenizer.encode(text))
    model.network.final_norm.gain.data[0] = float("nan")
    with pytest.raises(UserError, match=r"the loss of 150 of 150 tokens is infinite or not a number"):
        measure_tokens(model, Tokens.of(ids), before=3)


@pytest.fixture
def text(story_text):
    return story_text[:150]


def test_each_loss_is_that_of_the_logits(model, text):
    end = model.tokenizer.end_id
    ids = np.array(model.tokenizer.encode(text))
    ids[39] = end
    found = measure_tokens(model, Tokens.of(ids, separator=end), before=3)
    assert found.places.tolist() == [*range(len(ids))]
    assert (found.ids == ids).all()
    windows = [(0, 40), (40, 104), (104, len(ids))]  # 64 tokens each, and a document begins at 40
    assert found.positions.tolist() == [i for start, stop in windows for i in range(stop - start)]
    for start, stop in windows:
        inputs = [3 if start == 0 else int(ids[start - 1]), *ids[start : stop - 1].tolist()]
        probabilities = model.logits(inputs).double().softmax(-1)
        own = probabilities[torch.arange(stop - start), torch.from_numpy(ids[start:stop])]
        assert found.losses[start:stop] == pytest.approx(-own.log().numpy(), abs=1e-5)
        assert found.confidence[start:stop] == pytest.approx(probabilities.max(-1).values.numpy(), abs=1e-5)
        assert found.predicted[start:stop].tolist() == probabilities.argmax(-1).tolist()


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_the_mean_is_the_loss_of_eval(model, text, starts, ends):
    """Also for models that expect a start token in each window, and for those without an end token."""
    config = {"bos_token": model.tokenizer.tokens[0], "add_bos_token": True} if starts else {}
    if ends:
        config["eos_token"] = model.tokenizer.config["eos_token"]
    inner = tokenizers.Tokenizer.from_str(model.tokenizer.to_json())
    other = LanguageModel(model.network, Tokenizer(inner, config))
    assert (bool(other.tokenizer.start_ids), other.tokenizer.end_id is not None) == (starts, ends)
    read = ReportText.read("text", [Document.of("text", text)], other.tokenizer)
    found = measure_tokens(other, read.tokens, read.before)
    evaluation = other.evaluate(text)
    assert found.loss == pytest.approx(evaluation.loss, abs=1e-5)
    assert len(found.ids) == len(read.tokens) == evaluation.tokens
    start = StartToken.of(other.tokenizer, read.tokens)
    windows = windows_for_evaluation(read.tokens, 64, 8, read.before, start=start)
    expected = measure_positions(other.network, windows, 64)
    assert np.array(found.by_position()) == pytest.approx(np.array(expected.bins()), abs=1e-5)


def test_a_long_text_is_measured_in_windows_spread_over_it(model, text):
    ids = model.tokenizer.encode(text)
    found, few = (measure_tokens(model, Tokens.of(ids), 3, most) for most in (10**6, 100))
    assert set(few.places) < set(found.places)
    assert {0, len(ids) - 1} <= set(few.places)
    assert few.losses == pytest.approx(found.losses[few.places], abs=1e-5)


def test_means_by_position_and_frequency(model, text):
    ids = np.array(model.tokenizer.encode(text))
    found = measure_tokens(model, Tokens.of(ids), 3)
    by_place, by_group = defaultdict(list), defaultdict(list)
    counts = np.bincount(ids[: len(ids) // 2], minlength=model.config.n_vocab)
    occurrences = Counter(ids[: len(ids) // 2].tolist())
    for i, (token, loss) in enumerate(zip(ids.tolist(), found.losses, strict=True)):
        by_place[(i % 64 or 0).bit_length()].append(loss)
        by_group[max(least for least in FREQUENCIES if occurrences[token] >= least)].append(loss)
    assert [loss for _, loss in found.by_position()] == pytest.approx(
        [np.mean(by_place[key]) for key in sorted(by_place)]
    )
    groups = found.by_frequency(counts)
    assert {each.least: each.tokens for each in groups} == {key: len(each) for key, each in by_group.items()}
    assert {each.least: each.loss for each in groups} == pytest.approx(
        {key: np.mean(each) for key, each in by_group.items()}
    )
    worst = found.surprises(3)
    assert found.losses[worst].tolist() == sorted(found.losses, reverse=True)[:3]
    assert found.surprises(2, ends=[int(found.ids[worst[0]])])[0] != worst[0]


def test_calibration_error_is_the_mean_distance_between_confidence_and_accuracy():
    confidence = np.array([0.05, 0.31, 0.39, 0.95, 1.0])
    right = np.array([False, True, True, True, False])
    found = Calibration.of(confidence, right)
    assert [(each.low, each.predictions, each.accuracy) for each in found.bins] == [
        (0, 1, 0),
        (0.3, 2, 1),
        (0.9, 2, 0.5),
    ]
    assert found.accuracy == 0.6
    assert found.expected_error == pytest.approx((0.05 + 2 * 0.65 + 2 * 0.475) / 5)


def test_predictions_drawn_from_their_probabilities_are_calibrated():
    random = np.random.default_rng(0)
    confidence = random.random(20_000)
    found = Calibration.of(confidence, random.random(20_000) < confidence)
    assert found.expected_error < 0.02
    assert Calibration.of(confidence, np.ones(20_000, bool)).expected_error == pytest.approx(0.5, abs=0.02)


def test_repetition_compresses_and_noise_does_not():
    noise = np.random.default_rng(0).integers(256, size=20_000).astype(np.uint8).tobytes()
    assert all(bits == pytest.approx(8, abs=0.1) for bits in compressed_bits(noise).values())
    assert max(compressed_bits(b"the cat ran home. " * 2000).values()) < 0.1
