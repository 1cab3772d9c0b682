"""Timed runs whose validation loss rises: they return to the state with the lowest one, and end soon after."""

import random
from itertools import pairwise

import pytest

import clearhead as ch
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.setbacks import LAST_SHARE
from clearhead.text.corpus import documents

SMALL = {
    "blocks": 1,
    "heads": 1,
    "width": 32,
    "context": 16,
    "batch": 8,
    "tokenizer": "char",
    "device": "cpu",
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A text of random letters, which can only be memorized, and another one to validate on."""
    folder, paths = tmp_path_factory.mktemp("texts"), []
    for seed, name in enumerate(("text.txt", "other.txt")):
        paths.append(folder / name)
        paths[-1].write_text("".join(random.Random(seed).choices("abcdefgh", k=600)), encoding="utf-8")
    return paths


@pytest.fixture
def make_request(texts):
    def make(**changes):
        return TrainingRequest(**{"minutes": 0.5, "validation": str(texts[1]), **SMALL, **changes})

    return make


def train(run):
    """Train to the end; return the steps done at each step, and the validation losses by step."""
    records = [(each.record.step, each.validation) for each in run]
    return [step for step, _ in records], {step: loss for step, loss in records if loss is not None}


def script(monkeypatch, *losses):
    """Replace the validation losses of all runs with these."""
    found = iter(losses)

    def validate(run):
        run.losses.append(next(found))
        run.validated_at = run.trainer.step
        return run.losses[-1]

    monkeypatch.setattr(Run, "validate", validate)


def test_run_ends_with_the_lowest_validation_loss_it_had(texts, make_request, work_clock, tmp_path):
    run = Run(list(documents(texts[:1])), make_request(), tmp_path)
    steps, losses = train(run)
    assert any(after < before for before, after in pairwise(steps))
    assert run.trainer.step < max(steps)
    assert run.model.training["validation_loss"] == min(losses.values())
    assert run.validate() == pytest.approx(min(losses.values()))
    assert any("returned to step" in note for note in run.notes)


def test_learning_rate_decays_after_the_turn(texts, make_request, work_clock, tmp_path, monkeypatch):
    script(monkeypatch, 2.0, 1.5, 1.9, 1.9, 1.45, 1.4)
    run = Run(list(documents(texts[:1])), make_request(), tmp_path)
    run.plan = type(run.plan)(**vars(run.plan) | {"validations": 10})
    rates = {each.record.step: each.record.lr_scale for each in run}
    best = run.at_most - round(LAST_SHARE / (1 + LAST_SHARE) * run.at_most)
    assert run.trainer.step == run.at_most
    assert rates[best] > 0.6
    assert rates[best + 1] < 0.25
    assert rates[run.at_most] < 0.02
    assert run.losses == [2.0, 1.5, 1.45, 1.4]


def test_single_high_loss_is_no_turn(texts, make_request, work_clock, tmp_path, monkeypatch):
    losses = [2.0, 1.5, 1.9, 1.4, 1.8, 1.41, 1.7, 1.39, 1.6, 1.3]
    script(monkeypatch, *losses, *(99 * [1.3]))
    run = Run(list(documents(texts[:1])), make_request(), tmp_path)
    run.plan = type(run.plan)(**vars(run.plan) | {"validations": 10})
    steps, _ = train(run)
    assert steps == list(range(1, run.trainer.step + 1))
    assert run.at_most is None
    assert run.losses[: len(losses)] == losses


def test_run_that_turns_again_ends_with_its_best_state(
    texts, make_request, work_clock, tmp_path, monkeypatch
):
    script(monkeypatch, 2.0, 1.5, 1.9, 1.9, 1.8)
    run = Run(list(documents(texts[:1])), make_request(), tmp_path)
    run.plan = type(run.plan)(**vars(run.plan) | {"validations": 10})
    kept = {}
    for each in run:
        kept.setdefault(each.record.step, run.model.network.unembedding.weight.detach().clone())
    assert run.losses == [2.0, 1.5]
    assert run.model.training["validation_loss"] == 1.5
    assert kept[run.trainer.step].equal(run.model.network.unembedding.weight)


@pytest.mark.parametrize(("changes", "copies"), [({"minutes": None, "steps": 60}, 1), ({}, 200)])
def test_only_a_timed_run_that_repeats_its_text_goes_back(
    changes, copies, texts, make_request, work_clock, tmp_path, monkeypatch
):
    script(monkeypatch, *range(1, 99))
    path = tmp_path / "text.txt"
    path.write_text(copies * texts[0].read_text())
    run = Run(list(documents([path])), make_request(**changes), tmp_path)
    steps, losses = train(run)
    assert len(losses) > 2
    assert steps == list(range(1, run.trainer.step + 1))
    assert run.at_most is None


def test_saved_run_stopped_after_the_turn_resumes_there(texts, make_request, work_clock, tmp_path):
    def open_run(name):
        given = (list(documents(texts[:1])), make_request(), True)
        return SavedRun.open(tmp_path / name, *given, cache=tmp_path / "cache")

    def finish(saved):
        saved.run.model.save(saved.folder.path, overwrite=True)
        saved.finish()

    with open_run("whole") as saved:
        list(saved)
        finish(saved)
    with open_run("cut") as saved:
        for _ in saved:
            if saved.run.at_most is not None:
                break
        before = saved.run.trainer.step
    with open_run("cut") as saved:
        assert (saved.run.trainer.step, saved.run.at_most) == (before, saved.run.plan.recipe.steps)
        list(saved)
        finish(saved)
    for name in ("whole", "cut"):
        run = ch.runs(tmp_path)[name]
        done = ch.load(run.folder, "cpu").training["steps_done"]
        assert run.metrics["step"].tolist() == list(range(1, done + 1))
        assert run.validation_loss == run.best_validation_loss
        assert run.steps_done == run.steps_planned == done
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]
