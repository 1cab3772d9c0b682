"""Lessons of a run: each step is computed again exactly as it was trained."""

import json
import shutil

import pytest
import torch

import clearhead as ch
from clearhead.errors import UserError
from clearhead.files import seal
from clearhead.runs import recipes

SMALL = {
    **{"steps": 6, "blocks": 2, "width": 32, "heads": 2, "context": 32, "tokenizer": "char"},
    **{"device": "cpu", "snapshots": 6, "progress": False},
}
RECIPES = {
    "muon, dropout, accumulation": {"dropout": 0.2, "accumulation": 2, "batch": 4},
    "adamw": {"optimizer": "adamw", "preset": "gpt2", "batch": 2},
}
NAMES = ("block.1.head.1.W_K", "block.0.W_1", "embedding.W", "block.0.normed.gain", "final.gain")


@pytest.fixture(scope="module", params=RECIPES)
def run(request, story_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    ch.train(story_file, folder, **SMALL, **RECIPES[request.param])
    return ch.runs(folder)[0]


@pytest.fixture(scope="module")
def bfloat16_run(story_file, tmp_path_factory):
    """A run trained in bfloat16, as on a CPU with hardware for it."""
    folder = tmp_path_factory.mktemp("runs") / "half"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "has_fast_bfloat16", lambda device: True)
        ch.train(story_file, folder, **SMALL, batch=2)
    return ch.runs(folder)[0]


def test_a_step_in_bfloat16_is_repeated_bit_for_bit(bfloat16_run):
    run = bfloat16_run
    lesson = run.lesson(3)
    assert json.loads((run.folder / "run.json").read_text())["plan"]["recipe"]["bfloat16"]
    assert lesson.loss == run.metrics["loss"][2]
    assert lesson.gradient_norm == run.metrics["gradient_norm"][2]
    after, saved = lesson.apply(), ch.load(run.folder, "cpu", step=3)
    assert all(map(torch.equal, after.network.parameters(), saved.network.parameters()))
    for name in NAMES:
        update = lesson.update(name)
        difference = after.weight(name).double() - lesson.model.weight(name).double()
        torch.testing.assert_close(sum(update.terms.values()), difference, rtol=0, atol=1e-15)


def test_tokens_sum_to_the_gradient_in_bfloat16_up_to_its_rounding(bfloat16_run):
    lesson = bfloat16_run.lesson(3)
    assert lesson.losses.nanmean() == pytest.approx(lesson.loss, rel=2**-8)
    for name in NAMES:
        gradient = lesson.gradient[name]
        place = (1, 2)[: gradient.dim()]
        total = lesson.tokens(name, *place).total
        assert total == pytest.approx(gradient[place].item(), abs=2**-6 * gradient.abs().max().item())


def test_a_step_is_repeated_bit_for_bit(run):
    for step in (1, 3, 4):
        lesson = run.lesson(step)
        assert lesson.loss == run.metrics["loss"][step - 1]
        assert lesson.gradient_norm == run.metrics["gradient_norm"][step - 1]
        assert lesson.learning_rate == run.metrics["learning_rate"][step - 1]
        assert lesson.losses.nanmean() == pytest.approx(lesson.loss, rel=1e-5)
        after, saved = lesson.apply(), ch.load(run.folder, "cpu", step=step)
        assert all(map(torch.equal, after.network.parameters(), saved.network.parameters()))


def test_terms_sum_to_the_difference_of_two_snapshots(run):
    lesson = run.lesson(4)
    before, after = (ch.load(run.folder, "cpu", step=step) for step in (3, 4))
    for name in NAMES:
        update = lesson.update(name)
        difference = after.weight(name).double() - before.weight(name).double()
        torch.testing.assert_close(sum(update.terms.values()), difference, rtol=0, atol=1e-15)
        assert update.terms["rounding"].abs().max() <= 1e-6


def test_tokens_of_the_batch_sum_to_the_gradient(run):
    lesson = run.lesson(2)
    for name in NAMES:
        gradient = lesson.gradient[name]
        place = (1, 2)[: gradient.dim()]
        parts = lesson.tokens(name, *place)
        assert parts.values.shape == lesson.ids.shape
        assert parts.total == pytest.approx(gradient[place].item(), abs=1e-6)
        by_target = lesson.tokens(name, place[0], *place[1:], by="target")
        assert by_target.total == pytest.approx(parts.total, abs=1e-6)


def test_site_gradients_of_a_batch_with_dropout(run):
    """The gradients of the blocks' weights, as sums over positions, are those of the training step."""
    lesson = run.lesson(2)
    for name in ("block.0.head.0.W_Q", "block.1.head.1.W_O", "block.1.W_2", "block.0.normed2.gain"):
        (use,) = lesson.gradient.uses.of(name)
        torch.testing.assert_close(use.total(0), lesson.gradient[name], rtol=1e-4, atol=1e-7)


def test_later_steps_of_a_lesson_are_those_of_the_run(run):
    assert run.lesson(2).step(2).loss == run.metrics["loss"][3]


def test_a_checkpoint_or_a_snapshot_saves_repeated_steps(run):
    assert run.snapshots == [1, 2, 3, 4, 6]
    with pytest.raises(
        UserError, match=r"pass repeat=5 to repeat the 5 steps .* after a snapshot: 2, 3, 4, 5$"
    ):
        run.lesson(6, repeat=3)
    lesson = run.lesson(4, repeat=0)
    assert lesson.loss == run.metrics["loss"][3]
    with pytest.raises(UserError, match="the optimizer state before step 4 was not kept"):
        lesson.update("final.gain")


def test_the_text_must_be_the_same(run, tmp_path, story_file):
    other = tmp_path / "other.txt"
    other.write_text("another text " * 100)
    with pytest.raises(UserError, match="has changed or is not known; pass the files"):
        run.lesson(1, text=other)
    copied = shutil.copy(story_file, tmp_path / "copied.txt")
    assert run.lesson(1, text=copied).loss == run.metrics["loss"][0]


@pytest.mark.parametrize("step", [0, 7, "1", None])
def test_a_step_must_exist(run, step):
    with pytest.raises(UserError, match=r"expected a step of the run in .*, 1 to 6"):
        run.lesson(step)


def test_a_run_with_adapters(story_file, tmp_path, model_folder):
    folder = tmp_path / "tuned"
    ch.train(story_file, folder, start=str(model_folder), lora=2, steps=3, device="cpu", batch=2, snapshots=3,
             progress=False)  # fmt: skip
    run = ch.runs(folder)[0]
    lesson = run.lesson(2)
    assert lesson.loss == run.metrics["loss"][1]
    after = ch.load(folder, "cpu", step=2)
    assert torch.equal(lesson.apply().weight("block.0.W_1"), after.weight("block.0.W_1"))
    assert lesson.update("block.0.W_1").terms["adapter_B"].any()


def test_a_timed_run(story_file, tmp_path):
    """Its learning rate follows a number of steps that is adjusted while it trains."""
    sizes = {**SMALL, "minutes": 0.02, "blocks": 1, "width": 16}
    del sizes["steps"]
    ch.train(story_file, tmp_path / "timed", **sizes)
    run = ch.runs(tmp_path / "timed")[0]
    last = len(run.metrics["loss"])
    for step in {1, (last + 1) // 2, last}:
        lesson = run.lesson(step, repeat=last)
        for name, found in (
            ("loss", lesson.loss),
            ("gradient_norm", lesson.gradient_norm),
            ("learning_rate", lesson.learning_rate),
        ):
            assert found == run.metrics[name][step - 1], (step, name)


@pytest.fixture(scope="module")
def student(story_file, tmp_path_factory):
    place = tmp_path_factory.mktemp("students")
    sizes = {**SMALL, "blocks": 1, "width": 16, "steps": 3, "batch": 4}
    ch.train(story_file, place / "teacher", **sizes)
    sizes.pop("tokenizer")
    ch.train(story_file, place / "student", from_teachers=place / "teacher", **{**sizes, "dropout": 0.0})
    return ch.runs(place)["student"]


def test_a_student_learns_from_its_teachers(student):
    for step in (1, 3):
        lesson = student.lesson(step)
        assert lesson.loss == student.metrics["loss"][step - 1]
        assert lesson.gradient_norm == student.metrics["gradient_norm"][step - 1]
        assert lesson.losses.nanmean() == pytest.approx(lesson.loss, rel=1e-5)
    assert student.lesson(1).step(2).loss == lesson.loss
    share = lesson.trainer.recipe.true_share
    y = torch.nn.functional.one_hot(lesson.target_ids, lesson.network.config.n_vocab)
    wanted = share * y + (1 - share) * lesson.predicted
    p, n_targets = lesson.value("probabilities"), lesson.target_ids.numel()
    torch.testing.assert_close(lesson.gradient["logits"], (p - wanted) / n_targets, rtol=1e-3, atol=1e-7)
    torch.testing.assert_close(
        lesson.gradient["probabilities"], -wanted / p / n_targets, rtol=1e-3, atol=1e-6
    )
    for name, *place in (("block.0.head.0.W_K", 3, 1), ("embedding.W", 40, 2)):
        gradient = lesson.gradient[name][tuple(place)].item()
        for by in ("position", "target"):
            assert lesson.tokens(name, *place, by=by).total == pytest.approx(gradient, abs=1e-7)


def test_a_changed_teacher_is_refused(student, tmp_path):
    place = shutil.copytree(student.folder.parent, tmp_path / "place")
    settings = json.loads((place / "student" / "run.json").read_text())
    settings["request"]["teachers_sha256"] = ["0" * 64]
    (place / "student" / "run.json").write_text(json.dumps(seal(settings)))
    with pytest.raises(UserError, match=r"has changed since the run in .* learned from it"):
        ch.runs(place)["student"].lesson(1)


def test_random_numbers_of_several_processes_are_not_repeated(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    settings = json.loads((folder / "run.json").read_text())
    assert settings["processes"] == [1]
    settings["processes"] = [1, 2]
    (folder / "run.json").write_text(json.dumps(seal(settings)))
    if settings["plan"]["config"]["dropout"]:
        with pytest.raises(
            UserError, match="trained by 2 processes with dropout, each with its own random numbers"
        ):
            ch.runs(tmp_path)["run"].lesson(1)
    else:
        assert ch.runs(tmp_path)["run"].lesson(1).loss == run.metrics["loss"][0]


def test_a_recurrent_network_has_no_lesson(story_file, tmp_path):
    folder = tmp_path / "gru"
    settings = {**SMALL, "kind": "gru", "steps": 2, "snapshots": 0, "blocks": 1}
    del settings["heads"]
    model = ch.train(story_file, folder, **settings)
    for call in (lambda: ch.learn(model, "Once"), lambda: ch.runs(folder)[0].lesson(1)):
        with pytest.raises(UserError, match="a lesson requires a transformer; this model is of kind gru"):
            call()
