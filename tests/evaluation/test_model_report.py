"""The report, with every number computed again: an overfitted run, and a model on another text."""

import json
import math
import warnings
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import tokenizers
import torch

import clearhead as ch
from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.cli import report as cli_report
from clearhead.cli import run
from clearhead.errors import UserError
from clearhead.evaluation import baselines, reporting, run_text
from clearhead.evaluation.baselines import measure_pretrained
from clearhead.evaluation.run_summary import RunSummary
from clearhead.evaluation.run_text import shared_text
from clearhead.formats import pulled
from clearhead.formats.opening import is_model
from clearhead.runs.held_out import read_held_out
from clearhead.text.corpus import Document
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def own_home(tmp_path_factory):
    """A home folder for the fixtures of this module, in which no model was pulled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEARHEAD_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def overfitted(own_home, story_text, tmp_path_factory):
    """A run that has read two kilobytes a hundred times."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "short.txt").write_text(story_text[:3000])
    settings = {
        "steps": 150,
        "blocks": 2,
        "width": 64,
        "heads": 2,
        "context": 64,
        "batch": 16,
        "dropout": 0.0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text is short enough to be overfitted
        ch.train(folder / "short.txt", out=folder / "my", tokenizer="char", device="cpu", **settings)
    return folder / "my"


@pytest.fixture(scope="module")
def found(overfitted):
    return ch.report(overfitted, device="cpu")


def test_report_says_that_a_run_overfits(overfitted, found):
    model = ch.load(overfitted, "cpu")
    validation = read_held_out(overfitted, model.tokenizer.end_id).validation[:]
    assert found.losses.ids.tolist() == validation.tolist()
    content = model.tokenizer.decode(validation.tolist()).encode()
    assert found.bits_per_byte == pytest.approx(found.losses.losses.sum() / math.log(2) / len(content))
    worst = found.surprises[0]
    in_text = found.losses.losses * (validation != model.tokenizer.end_id)
    place = int(in_text.argmax())
    assert worst.loss == in_text[place]
    assert worst.token == model.tokenizer.pieces([int(validation[place])])[0]
    right = found.losses.predicted == validation
    assert found.calibration.accuracy == pytest.approx(np.mean(right))
    text = model.tokenizer.encode((overfitted.parent / "short.txt").read_text())
    training = [model.tokenizer.end_id, *text][: found.evidence.training_tokens]
    assert [*training, *validation][1:-1] == text
    data = found.to_dict()
    json.dumps(data)
    assert data["overfits"] is True
    assert found.evidence.trained_on < 0.9 * found.evidence.held_out == pytest.approx(0.9 * found.losses.loss)
    assert data["advice"][0]["what"] == "more text"
    assert found.copied.share > found.copied_by_people.share
    generated = model.generate(tokens=200, samples=16, temperature=1.0, seed=1)
    known = model.tokenizer.decode(training)
    longest = max(
        (each[i:j] for each in generated for i in range(len(each)) for j in range(i + 50, len(each) + 1)
         if each[i:j] in known),
        key=len,
        default="",
    )  # fmt: skip
    assert (found.copied.n, found.copied.longest) == (50, len(longest))
    assert found.longest_copy == longest


def test_held_out_text_is_measured_as_eval_measures_it(overfitted, found, tmp_path, capsys):
    model = ch.load(overfitted, "cpu")
    validation = read_held_out(overfitted, model.tokenizer.end_id).validation[:]
    path = tmp_path / "held-out.txt"
    path.write_bytes(model.tokenizer.decode(validation.tolist()).encode())
    assert (overfitted.parent / "short.txt").read_text().endswith(path.read_text())
    assert run(["eval", str(overfitted), str(path), "--device", "cpu", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert found.losses.loss == pytest.approx(figures["loss"], abs=1e-6)
    assert found.bits_per_byte == pytest.approx(figures["bits_per_byte"], abs=1e-6)
    assert len(found.losses.ids) == figures["tokens"]
    [alone] = ch.reports([overfitted], device="cpu")
    assert alone.losses.loss == found.losses.loss


def test_held_out_documents_are_measured_as_eval_measures_them(own_home, story_text, tmp_path):
    """A part of the third of four documents is held out, and all of the last; the boundary is within a word."""
    (tmp_path / "texts").mkdir()
    for i in range(4):
        (tmp_path / "texts" / f"{i}.txt").write_text(story_text[1000 * i : 1000 * (i + 1)].replace("a", "ä"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        settings = {"steps": 2, "blocks": 1, "width": 32, "heads": 1, "context": 32, "batch": 4}
        ch.train(
            tmp_path / "texts",
            out=tmp_path / "my",
            tokenizer="byte",
            validation=0.3,
            device="cpu",
            **settings,
        )
    model = ch.load(tmp_path / "my", "cpu")
    held_out = read_held_out(tmp_path / "my", model.tokenizer.end_id).validation
    third, last = ((tmp_path / "texts" / f"{i}.txt").read_text() for i in (2, 3))
    part = model.tokenizer.decode(held_out[:].tolist()).removesuffix(last).strip("\ufffd")
    assert third.endswith(part)
    assert 0 < len(part) < len(third)
    found = ch.report(tmp_path / "my", device="cpu")
    evaluation = model.evaluate([Document.of("third", part), Document.of("last", last)])
    assert len(found.losses.ids) == evaluation.tokens
    assert found.losses.loss == pytest.approx(evaluation.loss, abs=1e-6)
    assert found.bits_per_byte == pytest.approx(evaluation.bits_per_byte, abs=1e-6)


def test_report_compares_the_run_with_a_5_gram_of_its_text(overfitted, found):
    model = ch.load(overfitted, "cpu")
    text = model.tokenizer.encode((overfitted.parent / "short.txt").read_text())
    training = [model.tokenizer.end_id, *text][: found.evidence.training_tokens]
    ngram = estimate(count_ngrams(Tokens.of(training), model.config.n_vocab, model.tokenizer.end_id, order=5))
    ids, nats = found.losses.ids.tolist(), 0.0
    for start in range(0, len(ids), 64):
        inputs = [ids[start - 1] if start else model.tokenizer.end_id, *ids[start : start + 64]]
        scores = ngram(torch.tensor([inputs[:-1]]))[0].log_softmax(-1)
        nats -= scores[range(len(inputs) - 1), inputs[1:]].sum().item()
    [baseline] = found.baselines
    expected = nats / math.log(2) / len(model.tokenizer.decode(ids).encode())
    assert baseline.bits_per_byte == pytest.approx(expected, rel=1e-5)
    assert baseline.about == f"counted in its training text, {len(training):,} tokens"


def test_report_has_the_run_its_samples_and_its_heads(overfitted, found):
    model, [run] = ch.load(overfitted, "cpu"), ch.runs(overfitted)
    validated = np.isfinite(run.metrics["validation"])
    assert [loss for _, loss in found.run.validation] == run.metrics["validation"][validated].tolist()
    smoothed = dict(zip(run.metrics["step"].tolist(), run.metrics["smoothed"].tolist(), strict=True))
    assert found.run.training[0][0] == 1
    assert found.run.training[-1][0] == 150
    assert all(smoothed[step] == loss for step, loss in found.run.training)
    settings = found.run.settings
    assert (settings["text"], settings["steps"], settings["batch size"]) == ("short.txt", 150, 16)
    content = model.tokenizer.decode(found.losses.ids.tolist()).encode()
    tokens = round(500 * len(found.losses.ids) / len(content))
    for sample in found.samples:
        assert sample.text == model.generate(tokens=tokens, temperature=sample.temperature, seed=1)
    assert [sample.temperature for sample in found.samples] == [0.3, 0.7, 1.0]
    expected = ch.heads(model)
    assert found.to_dict()["heads"]["induction"] == {
        "scores": expected.induction.tolist(),
        "uniform": expected.chance["induction"],
    }
    text = "".join(model.tokenizer.pieces(found.losses.ids.tolist()))
    assert "".join(piece for piece, _ in found.passage) in text
    assert (found.surprises[0].token, found.surprises[0].loss) in found.passage
    worst = found.surprises[0]
    assert worst.before + worst.token + worst.after in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"learning_rate": 0.02}, "0.02"),
        ({}, "0.03"),
        ({"optimizer": "adamw", "learning_rate": 0.004}, "0.004"),
        ({"recipe": "classic"}, "0.001"),
    ],
)
def test_summary_shows_the_learning_rate_of_the_matrices(given, shown, own_home, story_text, tmp_path, capfd):
    """As the plan shows it before training, whether it was given or chosen."""
    (tmp_path / "short.txt").write_text(story_text[:2000])
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    sizes = [
        "--steps",
        "1",
        "--blocks",
        "1",
        "--width",
        "32",
        "--heads",
        "1",
        "--context",
        "32",
        "--batch",
        "4",
    ]
    command = ["train", str(tmp_path / "short.txt"), "-o", str(tmp_path / "my"), "--tokenizer", "char"]
    assert run([*command, "--device", "cpu", *sizes, *options]) == 0
    assert f"learning rate {shown}," in capfd.readouterr().err
    assert RunSummary.of(tmp_path / "my").settings["learning rate"] == shown


@pytest.mark.parametrize("trained", [True, False])
def test_phases_and_progress_are_reported(trained, overfitted, story_text, tmp_path, monkeypatch):
    monkeypatch.setattr(reporting, "COPIED_TOKENS", 5)
    monkeypatch.setattr(reporting, "SAMPLE", 10)
    ch.load(overfitted, "cpu").save(tmp_path / "saved")
    phases, counts = [], {}
    ch.report(
        overfitted if trained else tmp_path / "saved",
        [Document.of("a text", story_text[:300])],
        device="cpu",
        on_message=phases.append,
        on_progress=lambda done, total, unit: counts.setdefault((phases[-1], unit), []).append((done, total)),
    )
    ours = ["counting n-grams", "searching the training text for copies"]
    assert [each for each in ours if each in phases] == (ours if trained else [])
    long = [
        ("generating texts", "tokens"),
        ("scoring minimal pairs", "sentences"),
        ("scoring heads", "texts"),
    ]
    assert [each for each in phases if each not in ours][1:] == [phase for phase, _ in long]
    assert list(counts) == long
    for phase in long:
        done, [total] = [done for done, _ in counts[phase]], {total for _, total in counts[phase]}
        assert len(done) > 3
        assert done == sorted(done)
        assert done[-1] == total
    assert total == 34  # four sequences and thirty stories


def test_terminal_shows_how_much_is_done(monkeypatch):
    printed, shown = [], []
    monkeypatch.setattr(cli_report, "err", SimpleNamespace(is_terminal=True, print=printed.append))
    activity = cli_report._Activity(lambda line, plain: shown.append((line, plain)))
    activity.begin("generating texts")
    activity.count(5, 1200, "tokens")
    activity.count(1200, 1200, "tokens")
    activity.begin("scoring heads")
    assert shown == [
        ("generating texts …", True),
        ("generating texts … 5 of 1,200 tokens", False),
        ("generating texts … 1,200 of 1,200 tokens", False),
        ("scoring heads …", True),
    ]
    assert printed == ["generating texts … 1,200 of 1,200 tokens"]


def test_pretrained_model_as_a_baseline(story_text, tmp_path, monkeypatch):
    """A small model in place of the pulled one."""
    other = ch.load("stories", "cpu")
    monkeypatch.setattr(pulled, "find", lambda name: tmp_path)
    monkeypatch.setattr(baselines, "load", lambda name, device: other)
    texts = [story_text[:700], story_text[700:1500]]
    found = measure_pretrained(ch.load("stories", "cpu"), texts, lambda _: None, "cpu")
    evaluation = other.evaluate([Document.of(text[:9], text) for text in texts])
    assert found.bits_per_byte == pytest.approx(evaluation.bits_per_byte, rel=1e-5)
    assert str(evaluation.tokens) in found.about
    monkeypatch.setattr(other, "name", "smollm2")
    assert measure_pretrained(other, texts, lambda _: None, "cpu") is None


def test_report_on_another_text_without_a_run(story_text, tmp_path, capsys):
    path = tmp_path / "other.txt"
    path.write_text(story_text[:2000])
    ch.load("stories", "cpu").save(tmp_path / "saved")
    with pytest.raises(UserError, match="saved contains no held-out text: name a text"):
        ch.report(tmp_path / "saved", device="cpu")
    assert run(["report", "stories", str(path), "--device", "cpu", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    evaluation = ch.load("stories", "cpu").evaluate(path)
    assert data["loss"] == pytest.approx(evaluation.loss, abs=1e-4)
    assert data["bits_per_byte"] == pytest.approx(evaluation.bits_per_byte, abs=1e-4)
    assert (data["copied"], data["overfits"], data["advice"], data["baselines"]) == (None, None, [], [])
    assert data["run"]["settings"]["steps"] == 25_000
    assert data["minimal_pairs"][0]["accuracy"] == 1


def test_built_in_model_is_measured_on_new_stories(tmp_path, monkeypatch, capsys):
    """Its own run holds out nothing; the stories are not those it was trained and validated on."""
    monkeypatch.setattr(run_text, "STORIES", 12)
    monkeypatch.chdir(tmp_path)
    assert run(["report", "stories", "--device", "cpu", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    texts = [Document.of(f"{i}", each.text) for i, each in enumerate(islice(stories(run_text.SEED), 12))]
    evaluation = ch.load("stories", "cpu").evaluate(texts)
    assert data["text"] == "new stories"
    assert data["tokens"] == evaluation.tokens
    assert data["bits_per_byte"] == pytest.approx(evaluation.bits_per_byte, abs=1e-4)
    other = ch.load("stories", "cpu")
    other.save(tmp_path / "saved")
    first, second = ch.reports(["stories", tmp_path / "saved"], device="cpu")
    assert first.text == second.text == "new stories"
    assert first.bits_per_byte == pytest.approx(second.bits_per_byte, abs=1e-3)


@pytest.mark.parametrize("starts", [False, True])
def test_report_on_a_model_without_an_end_token(model, story_text, tmp_path, starts):
    config = {"bos_token": model.tokenizer.tokens[0], "add_bos_token": True} if starts else {}
    inner = tokenizers.Tokenizer.from_str(model.tokenizer.to_json())
    ch.LanguageModel(model.network, Tokenizer(inner, config)).save(tmp_path / "endless")
    found = ch.report(tmp_path / "endless", [Document.of("a text", story_text[:400])], device="cpu")
    evaluation = ch.load(tmp_path / "endless", "cpu").evaluate(story_text[:400])
    assert found.losses.loss == pytest.approx(evaluation.loss, abs=1e-5)
    assert found.bits_per_byte == pytest.approx(evaluation.bits_per_byte, abs=1e-5)
    assert [len(sample.text) > 50 for sample in found.samples] == [True] * 3
    assert (found.run, found.copied, found.evidence) == (None, None, None)


@pytest.fixture(scope="module")
def other(own_home, overfitted):
    """A run on the same text with other tokens, which holds out more of its end."""
    settings = {"steps": 3, "blocks": 1, "width": 32, "heads": 1, "context": 32, "batch": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ch.train(
            overfitted.parent / "short.txt",
            out=overfitted.parent / "other",
            tokenizer="byte",
            validation=0.2,
            device="cpu",
            **settings,
        )
    return overfitted.parent / "other"


def test_models_are_compared_on_what_all_hold_out(overfitted, other, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["report", str(overfitted), str(other), "stories", "--device", "cpu", "--json"]) == 0
    found = {each["model"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(found) == ["my", "other", "stories"]
    assert {each["text"] for each in found.values()} == {"the held-out text of my and other"}
    model = ch.load(overfitted, "cpu")
    held_out = read_held_out(overfitted, model.tokenizer.end_id).validation[:]
    text = model.tokenizer.decode(held_out.tolist())
    for path in (overfitted, other, "stories"):
        model = ch.load(path, "cpu")
        evaluation, measured = model.evaluate(text), found[model.name]
        assert measured["bits_per_byte"] == pytest.approx(evaluation.bits_per_byte, abs=1e-5)
        assert measured["tokens"] == evaluation.tokens
    assert found["my"]["overfits"]
    assert not found["stories"]["baselines"]


def test_models_that_hold_out_different_texts_need_a_text(overfitted, story_text, tmp_path):
    ch.load("stories", "cpu").save(tmp_path / "saved")
    with pytest.raises(UserError, match="none of the models holds out a text: name one"):
        ch.reports([tmp_path / "saved"], device="cpu")
    with pytest.raises(UserError, match="a model was named twice"):
        ch.reports([overfitted, overfitted], device="cpu")
    with pytest.raises(UserError, match="expected a list of models"):
        ch.reports("stories")
    assert shared_text([["ab", "cd"], ["b", "cd"], ["d"]]) == ["d"]
    assert shared_text([["xab", "cd"], ["ab", "cd"]]) == ["ab", "cd"]
    assert shared_text([["ab"], ["cb"]]) is None


def test_names_of_models_and_texts_are_told_apart(overfitted, tmp_path):
    (tmp_path / "stories").write_text("a text")
    models = [overfitted, str(overfitted), "stories", "smollm2", overfitted / "best"]
    assert [is_model(each) for each in models] == [True, True, True, True, (overfitted / "best").exists()]
    texts = [tmp_path, tmp_path / "stories", tmp_path / "missing", overfitted / "metrics.jsonl"]
    assert not any(map(is_model, texts))
