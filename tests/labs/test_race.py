"""A race of a few seconds: all entries are evaluated on the same text, as `evaluate` does."""

import csv
import io
import json

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.labs import race as module
from clearhead.language_model import load
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokens import Tokens
from clearhead.training.objective import evaluate
from tests.work_clock import WorkClock

SHORT = {"minutes": 0.02, "tokenizer": "char", "device": "cpu", "context": 64}


@pytest.fixture(scope="module")
def made(story_file, model_folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, WorkClock():
        patch.setenv("CLEARHEAD_HOME", str(tmp_path_factory.mktemp("home")))
        return clearhead.race(story_file, models=[str(model_folder)], tokens=20, **SHORT)


def of(made, name):
    """Return one entry's row of the results, by column."""
    table = made.part("racers")
    return dict(zip(table.columns, table.values[table.rows.index(name)], strict=True))


def test_all_entries_are_ranked_by_bits_per_byte(made, model_folder):
    names = made.part("racers").rows
    assert set(names) == {"ngram", "lstm", "transformer", str(model_folder)}
    bits = [of(made, name)["bits per byte"] for name in names]
    assert bits == sorted(bits)
    assert made.findings["best"] == names[0] == "ngram"  # no network catches up with counting in a second
    assert made.findings["its bits per byte"] == bits[0]
    for name in names:
        racer, saved = of(made, name), name == str(model_folder)
        assert racer["parameters"] > 100
        assert racer["written/s"] > 0
        assert [racer[each] is None for each in ("seconds", "tokens read", "learned/s")] == [saved] * 3


def test_saved_models_score_the_same_as_evaluate(made, story_text, model_folder):
    model = load(model_folder, "cpu")
    end = story_text.encode()[-made.findings["evaluation bytes"] :].decode()
    bits = of(made, str(model_folder))["bits per byte"]
    assert bits == pytest.approx(model.evaluate(end).bits_per_byte, rel=1e-4)


def test_position_losses_bracket_the_loss_and_ngrams_ignore_distant_context(made):
    part = made.part("loss by position in the window")
    assert part.x == [1, 2, 3.5, 6.5, 12.5, 24.5, 48.5]
    for name, losses in part.lines.items():
        assert min(losses) < of(made, name)["bits per byte"] < max(losses)
    losses = dict(zip(part.x, part.lines["ngram"], strict=True))
    assert losses[1] > losses[2] > losses[6.5]
    assert abs(losses[48.5] - losses[12.5]) < 0.3 * (losses[1] - losses[12.5])


def test_windows_can_start_at_an_offset(model_folder, story_text):
    model = load(model_folder, "cpu")
    ids = model.tokenizer.encode(story_text[:500])
    entry = module.Entry("one", model, Tokens.of(ids), model.tokenizer.end_id, context=16)
    first, shifted = entry.measure(), entry.measure(5)
    assert (first.tokens, shifted.tokens) == (len(ids), len(ids) - 5)
    plain = evaluate(model.network, windows_for_evaluation(Tokens.of(ids[5:]), 16, 3, before=ids[4]))
    assert shifted.total / shifted.tokens == pytest.approx(plain, rel=1e-4)
    assert (first + shifted).counts[0] == first.counts[0] + shifted.counts[0]
    assert (first + shifted).total == pytest.approx(first.total + shifted.total)


def test_all_samples_continue_the_same_prompt(made, model_folder):
    samples = made.part("samples")
    assert samples.rows == made.part("racers").rows
    [written] = samples.values[samples.rows.index(str(model_folder))]
    assert written == load(model_folder, "cpu").generate(made.settings["prompt"], tokens=20, seed=0)


def test_results_export_and_plot_like_any_lab(made):
    assert json.loads(made.to_json())["findings"] == made.findings
    rows = list(csv.DictReader(io.StringIO(made.to_csv())))
    [bits] = [row for row in rows if (row["part"], row["column"]) == ("racers", "bits per byte")][:1]
    assert (bits["row"], float(bits["value"])) == ("ngram", made.findings["its bits per byte"])
    drawn = clearhead.figure(made, title="a race of a second")._repr_svg_()
    assert ">a race of a second</text>" in drawn
    assert ">transformer</text>" in drawn
    assert f">{of(made, 'lstm')['parameters']:,}</text>" in drawn
    assert ">race</text>" in clearhead.figure(made)._repr_svg_()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kinds": ["rnn"]}, "expected one of transformer"),
        ({"kinds": ["lstm", "lstm"]}, "lstm was named twice"),
        ({"kinds": []}, "there are no competitors"),
        ({"prompt": "щ"}, "щ"),
        ({"prompt": ""}, "the prompt is empty"),
        ({"models": ["nowhere/at/all"]}, "nowhere/at/all"),
        ({"minutes": None}, "minutes = None"),
        ({"tokens": 0}, "tokens = 0"),
        ({"tokenizer": "words"}, "tokenizer = 'words'"),
    ],
)
def test_errors_are_raised_before_training(story_file, given, words, monkeypatch):
    def train(*_, **__):
        raise AssertionError("trained all the same")

    monkeypatch.setattr(module, "Run", train)
    monkeypatch.setattr(module, "count_text", train)
    with pytest.raises(UserError, match=words):
        clearhead.race(story_file, **{**SHORT, **given})


def test_short_text_warns_about_overfitting(tmp_path, work_clock):
    """The text is short enough to be overfitted."""
    (tmp_path / "short.txt").write_text("Anna had a red kite. " * 8)
    with pytest.warns(UserWarning, match="elman: the text is short"):
        clearhead.race(tmp_path / "short.txt", kinds=["elman"], minutes=0.05, device="cpu")
