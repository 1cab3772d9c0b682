"""Runs that learn from teachers: what is checked, exact resume, and what is kept."""

import shutil
from types import SimpleNamespace

import pytest

import clearhead as ch
from clearhead.errors import UserError
from clearhead.runs.request import TrainingRequest
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.summary import summarize
from clearhead.runs.teachers import Teachers
from clearhead.text.corpus import documents
from clearhead.training.distillation import TRUE_SHARE

SMALL = {"blocks": 1, "heads": 1, "width": 16, "batch": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("The chicken didn't cross the road because it was too tired.\n" * 60, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def teachers(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers")
    for seed in range(2):
        ch.train(text, folder / str(seed), steps=6, seed=seed, tokenizer="char", context=32, **SMALL)
    return [folder / "0", folder / "1"]


def train_until(folder, text, request, step=None):
    run = SavedRun.open(folder, list(documents([text])), request, True, cache=folder.parent / "cache")
    with run:
        for progress in run:
            if progress.record.step == step:
                run.save()
                return
        run.run.model.save(folder, overwrite=True)
        run.finish()


def test_student_has_the_teachers_tokenizer_context_and_split(text, teachers):
    model = ch.train(text, from_teachers=teachers, steps=3, **SMALL)
    first = ch.load(teachers[0], "cpu")
    assert model.tokenizer.to_json() == first.tokenizer.to_json()
    assert model.config.n_context == 32
    for name in ("tokens", "validation_tokens", "text_sha256"):
        assert model.training[name] == first.training[name]
    assert model.training["from_teachers"] == [str(each) for each in teachers]
    assert model.training["recipe"]["true_share"] == TRUE_SHARE


def test_interrupted_student_resumes_to_the_same_weights(text, teachers, tmp_path):
    request = TrainingRequest(steps=8, from_teachers=teachers, **SMALL)
    train_until(tmp_path / "whole", text, request)
    train_until(tmp_path / "cut", text, request, step=3)
    train_until(tmp_path / "cut", text, request)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


@pytest.fixture(scope="module")
def taught_by_folders(text, teachers):
    return weights_of(ch.train(text, from_teachers=teachers, steps=3, **SMALL))


def weights_of(model):
    return [each.detach().clone() for each in model.network.parameters()]


@pytest.mark.parametrize("kind", ["loaded", "ensemble", "pattern", "mixed"])
def test_teachers_are_models_or_their_names(kind, text, teachers, taught_by_folders, monkeypatch):
    monkeypatch.chdir(teachers[0].parent)
    loaded = [ch.load(each, "cpu") for each in teachers]
    given = {
        "loaded": loaded,
        "ensemble": ch.ensemble(loaded),
        "pattern": "[01]",
        "mixed": [teachers[0], loaded[1]],
    }[kind]
    model = ch.train(text, from_teachers=given, steps=3, **SMALL)
    assert all(one.equal(other) for one, other in zip(weights_of(model), taught_by_folders, strict=True))
    assert len(model.training["from_teachers"]) == 2
    assert all(each.requires_grad for each in loaded[0].network.parameters())


def test_run_with_loaded_teachers_is_resumed_and_extended_with_the_same(text, teachers, tmp_path):
    first, second = (ch.load(each, "cpu") for each in teachers)
    folder = tmp_path / "student"
    train_until(folder, text, TrainingRequest(steps=4, from_teachers=first, **SMALL), step=2)
    with pytest.raises(UserError, match=r"`from_teachers` was \[\'loaded: 0\'\] and is \[\'loaded: 1\'\]\)"):
        ch.train(text, folder, resume=True, from_teachers=second, steps=4, **SMALL)
    model = ch.train(text, folder, resume=True, from_teachers=first, steps=4, **SMALL)
    assert model.training["from_teachers"] == ["loaded: 0"]
    assert ch.runs(folder)[0].role == "student of 1 teacher"
    with pytest.raises(UserError, match=r"learned from a loaded model \(0\).*: pass it again"):
        ch.train(text, folder, resume=True, steps=2)
    assert ch.train(text, folder, resume=True, steps=2, from_teachers=first).training["steps_done"] == 6


def test_changed_teacher_is_noticed(text, teachers, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(teachers[0], own)
    train_until(tmp_path / "student", text, TrainingRequest(steps=8, from_teachers=own, **SMALL), step=3)
    shutil.copy(teachers[1] / "model.safetensors", own)
    shutil.copy(teachers[1] / "clearhead.json", own)
    with pytest.raises(UserError, match="the weights in `from_teachers` have changed"):
        train_until(tmp_path / "student", text, TrainingRequest(steps=8, from_teachers=own, **SMALL))


def test_student_of_given_teachers_trains_none_when_it_is_extended(text, teachers, tmp_path):
    ch.train(text, tmp_path / "student", from_teachers=teachers[0], steps=3, **SMALL)
    with pytest.raises(
        UserError, match=r"`teachers` was None and is 2, `from_teachers` was \[.*\] and is None"
    ):
        ch.train(text, tmp_path / "student", resume=True, teachers=2, steps=3)


def test_teachers_must_share_a_tokenizer(text, teachers, tmp_path):
    ch.train(text, tmp_path / "bytes", steps=1, tokenizer="byte", context=32, **SMALL)
    with pytest.raises(UserError, match="different tokenizer"):
        ch.train(text, from_teachers=[teachers[0], tmp_path / "bytes"], steps=1, **SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"from_teachers": []}, "names no models"),
        ({"from_teachers": [1]}, "expected models, or their names or folders"),
        ({"from_teachers": 1}, "expected models, or their names or folders"),
        ({"keep_teachers": False}, "are always kept"),
        ({"from_teachers": "nowhere/*"}, "matches no model folder"),
        ({"tokenizer": "char"}, "`tokenizer` cannot be combined"),
        ({"bidirectional": True}, "`bidirectional` cannot be combined"),
        ({"context": 64}, "the teachers read at most 32 tokens"),
        ({"kind": "ngram", "steps": None, "blocks": None, "width": None}, "does not apply|omit"),
    ],
)
def test_settings_that_do_not_fit_are_rejected(settings, message, text, teachers):
    given = {"steps": 1, "from_teachers": teachers, **SMALL, **settings}
    with pytest.raises(UserError, match=message):
        ch.train(text, **given)


def test_student_worse_than_a_teacher_is_reported():
    """Both losses are measured on the same validation text."""
    taught = Teachers((), None, 8, None, (2.5, 2.0))
    request = SimpleNamespace(teachers=2, steps=None)
    trainer = SimpleNamespace(step=9, recipe=SimpleNamespace(steps=9))
    run = SimpleNamespace(losses=[3.0, 2.4], teachers=taught, request=request, trainer=trainer)
    [message] = summarize(run)
    assert message == (
        "the validation loss is 2.4000, and one of the teachers ended at 2.0000: the student had too few steps; "
        "give the run more time, or train a single model (`teachers=0`)"
    )
    request.steps = 5
    assert "give the run more steps, or" in summarize(run)[0]
    run.losses = [3.0, 1.9]
    assert summarize(run) == []
    run.losses, trainer.step = [3.0, 2.4], 8  # stopped, to be resumed
    assert "too few steps" not in "".join(summarize(run))
    trainer.step = 9
    run.losses, run.request.teachers = [3.0, 2.4], None  # given teachers may be trained on another text
    assert summarize(run) == []
