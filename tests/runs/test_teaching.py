"""Runs that train their own teachers: the phases, exact resume in each of them, and when the plan chooses it."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from filelock import FileLock

import clearhead as ch
from clearhead.errors import UserError
from clearhead.files import seal
from clearhead.runs import teaching, training
from clearhead.runs.listing import is_extendable
from clearhead.runs.measure import Measure
from clearhead.runs.observer import Observer
from clearhead.runs.plan import Plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_folder import RunFolder, request_to_json
from clearhead.runs.teaching import (
    FEW,
    MANY,
    STUDENTS,
    TeachingPlan,
    choose_teaching,
    discard_unstarted,
    plan_teaching,
)
from clearhead.runs.teaching_start import plan_first_teacher
from clearhead.runs.training import train_network
from clearhead.text.corpus import documents
from clearhead.text.corpus import measure as measure_text

SMALL = {
    "blocks": 1,
    "heads": 1,
    "width": 16,
    "batch": 4,
    "context": 16,
    "tokenizer": "char",
    "device": "cpu",
}
STEPS = 5


class StoppedError(Exception):
    pass


def stop_at(number):
    """A callback that raises at the given step, counted over all phases."""
    count = 0

    def called(_):
        nonlocal count
        count += 1
        if count == number:
            raise StoppedError

    return called


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("The chicken didn't cross the road because it was too tired.\n" * 60, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """A run with two teachers."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    ch.train(text, folder, teachers=2, steps=STEPS, **SMALL)
    return folder


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_student_equals_one_trained_by_hand_from_the_same_teachers(whole, text, tmp_path):
    for number in (1, 2):
        ch.train(text, tmp_path / str(number), steps=STEPS, seed=number, teachers=0, **SMALL)
        assert weights(tmp_path / str(number)) == weights(whole / "teachers" / str(number))
    own = {name: value for name, value in SMALL.items() if name != "tokenizer"}
    teachers = [tmp_path / "1", tmp_path / "2"]
    ch.train(text, tmp_path / "student", steps=STEPS, from_teachers=teachers, **own)
    assert weights(tmp_path / "student") == weights(whole)


def test_unsaved_run_trains_the_same_student(whole, text):
    model = ch.train(text, teachers=2, steps=STEPS, **SMALL)
    saved = ch.load(whole, "cpu")
    for own, other in zip(model.network.parameters(), saved.network.parameters(), strict=True):
        assert own.equal(other)
    assert model.training["teachers"] == 2


@pytest.mark.parametrize("step", [2, STEPS, STEPS + 2, 2 * STEPS + 1, 3 * STEPS - 1])
def test_run_stopped_in_any_phase_resumes_to_the_same_bytes(step, whole, text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 2, "steps": STEPS, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(step), **given)
    with pytest.raises(UserError, match="unfinished run"):
        ch.train(text, folder, **given)
    ch.train(text, folder, resume=True, **given)
    for place in (".", "teachers/1", "teachers/2"):
        for name in ("model.safetensors", "run.json"):
            assert (folder / place / name).read_bytes() == (whole / place / name).read_bytes()
    assert (folder / "metrics.jsonl").read_text().count("\n") == STEPS


def test_all_phases_record_the_command_that_started_the_run(text, tmp_path):
    request = TrainingRequest(teachers=2, steps=STEPS, **SMALL)
    command = ["clearhead", "train", "text.txt", "--teachers", "2"]

    class Stopping(Observer):
        def stepped(self, run, progress):
            return run.request.seed != 2 or progress.record.step < 2

    def train(observer, **options):
        return train_network(tmp_path / "run", lambda: list(documents([text])), request, observer, **options)

    assert train(Stopping(), command=command).phase == "teacher 2 of 2"
    assert train(Observer(), command=[*command, "--resume"], resume=True).finished
    for place in (".", "teachers/1", "teachers/2"):
        settings = json.loads((tmp_path / "run" / place / "run.json").read_text())
        assert settings["command"] == command
        assert settings["resume"] == (place != ".")


@pytest.mark.filterwarnings("ignore:the validation loss")
def test_run_that_drops_a_teacher_resumes_and_extends_with_its_own_settings(
    text, tmp_path, monkeypatch, work_clock
):
    monkeypatch.setattr(training, "LATEST", 0)  # each teacher takes too long
    folder, given = tmp_path / "run", {"teachers": 2, "minutes": 0.1, "progress": False, **SMALL}

    def stop_student(_):
        if (folder / "run.json").exists():
            raise StoppedError

    with (
        pytest.warns(UserWarning, match="so only 1 of 2 will teach"),
        pytest.raises(StoppedError),
    ):
        ch.train(text, folder, callbacks=stop_student, **given)
    done = ch.train(text, folder, resume=True, **given).training["steps_done"]
    model = ch.train(text, folder, resume=True, **given)
    assert model.training["steps_done"] > done
    assert model.training["teachers"] == 1
    student, teacher = ch.runs(folder)
    assert [student.role, teacher.role] == ["student of 1 teacher", "teacher 1 of 1"]
    with pytest.raises(UserError, match="`teachers` was 2 and is 1"):
        ch.train(text, folder, resume=True, **{**given, "teachers": 1})
    shutil.rmtree(folder / "teachers")
    assert ch.runs(folder)[0].role == "student of 1 teacher"


@pytest.mark.filterwarnings("ignore:the validation loss", "ignore:the teachers took longer")
def test_time_of_an_interrupted_teacher_counts(text, tmp_path, work_clock):
    given = {"teachers": 2, "minutes": 0.1, "progress": False, **SMALL}

    def spent(folder):
        return json.loads((folder / "teachers" / "plan.json").read_text())["seconds"]

    whole, folder = tmp_path / "whole", tmp_path / "run"
    ch.train(text, whole, **given)
    half = ch.load(whole / "teachers" / "2", "cpu").training["steps_done"] // 2
    steps = 0

    def stop_second_teacher(_):
        nonlocal steps
        steps += (folder / "teachers" / "2" / "run.json").exists()
        if steps == half:
            raise StoppedError

    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_second_teacher, **given)
    before = spent(folder)
    ch.train(text, folder, resume=True, **given)
    assert spent(folder) - before > 0.9 * (spent(whole) - before)


@pytest.mark.filterwarnings("ignore:the validation loss")
def test_run_whose_plan_chose_teachers_can_be_extended_with_the_same_command(
    text, tmp_path, monkeypatch, work_clock
):
    def choose(run):
        given = (run.request, request_to_json(run.request), run.text_sha256)
        return None if run.request.teachers is not None else plan_teaching(*given, 2)

    monkeypatch.setattr(training, "teaching_of", choose)
    folder, given = tmp_path / "run", {"minutes": 0.1, **SMALL}
    done = ch.train(text, folder, **given).training["steps_done"]
    assert ch.runs(folder)[0].role.startswith("student of")
    assert not json.loads((folder / "run.json").read_text())["resume"]
    assert ch.train(text, folder, resume=True, **given).training["steps_done"] > done


def test_nothing_is_left_if_the_first_teacher_cannot_start(text, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("ab", encoding="utf-8")
    folder, given = tmp_path / "runs" / "run", {"teachers": 2, "steps": 2, **SMALL}
    with pytest.raises(UserError, match="provide more text"):
        ch.train(short, folder, **given)
    assert not folder.parent.exists()
    folder.mkdir(parents=True)
    (folder / "notes.txt").touch()
    plan_teaching(TrainingRequest(**given), {}, "", 2).save(folder)
    discard_unstarted(folder, [folder.parent])
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]


def test_plan_stays_while_another_process_starts_the_first_teacher(text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 2, "steps": 2, **SMALL}
    request = TrainingRequest(**given)
    plan_teaching(request, request_to_json(request), measure_text(list(documents([text])))[0], 2).save(folder)
    first = folder / "teachers" / "1"
    first.mkdir()
    with FileLock(first / ".lock"), pytest.raises(UserError, match="another run is training"):
        ch.train(text, folder, resume=True, **given)
    assert (folder / "teachers" / "plan.json").exists()
    ch.train(text, folder, resume=True, **given)


def test_finished_run_is_not_trained_again(whole, text):
    before = weights(whole)
    ch.train(text, whole, resume=True, callbacks=stop_at(1))
    assert weights(whole) == before


def test_other_settings_and_another_text_are_rejected(text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 2, "steps": STEPS, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(STEPS + 1), **given)
    with pytest.raises(UserError, match="`width` was 16 and is 32"):
        ch.train(text, folder, resume=True, **{**given, "width": 32})
    other = tmp_path / "other.txt"
    other.write_text("Another text.\n" * 300, encoding="utf-8")
    with pytest.raises(UserError, match="the text differs"):
        ch.train(other, folder, resume=True, **given)


def test_extension_learns_from_the_same_teachers(whole, text, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    model = ch.train(text, folder, resume=True, steps=3)
    assert model.training["steps_done"] == STEPS + 3
    assert model.training["recipe"]["true_share"] < 1


@pytest.mark.parametrize("stop", [STEPS + 1, 2 * STEPS + 2])
def test_run_that_trains_its_teachers_takes_no_others(stop, whole, text, tmp_path):
    folder, given = tmp_path / "run", {"steps": STEPS, **SMALL, "tokenizer": None}
    with pytest.raises(StoppedError):
        ch.train(text, folder, teachers=2, callbacks=stop_at(stop), **given)
    with pytest.raises(UserError, match="`teachers` was 2 and is None, `from_teachers` was None and is "):
        ch.train(text, folder, resume=True, from_teachers=whole, **given)


def test_extension_takes_no_other_teachers(whole, text, tmp_path):
    with pytest.raises(UserError, match="the run was not started with `from_teachers`: omit it"):
        ch.train(text, shutil.copytree(whole, tmp_path / "run"), resume=True, from_teachers=whole, steps=3)


def test_extension_without_teachers_is_refused(whole, text, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "teachers" / "2")
    with pytest.raises(UserError, match=r"the teachers 2 in .*teachers were deleted"):
        ch.train(text, folder, resume=True, steps=3)
    shutil.rmtree(folder / "teachers")
    with pytest.raises(UserError, match=r"the teachers in .*teachers were deleted"):
        ch.train(text, folder, resume=True, steps=3)
    assert ch.load(folder, "cpu").generate("The", tokens=2)


def test_unfinished_student_without_teachers_cannot_be_resumed(text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 2, "steps": STEPS, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(2 * STEPS + 1), **given)
    shutil.rmtree(folder / "teachers")
    with pytest.raises(UserError, match="cannot be resumed without them: start it again in another folder"):
        ch.train(text, folder, resume=True, **given)


def test_teachers_are_discarded_once_their_student_is_saved(whole, text, tmp_path, monkeypatch):
    """Killed before they are deleted, the run deletes them when it is repeated."""
    folder, given = tmp_path / "run", {"teachers": 2, "steps": STEPS, "keep_teachers": False, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(3 * STEPS - 1), **given)
    assert (folder / "teachers" / "2" / "model.safetensors").exists()
    with monkeypatch.context() as killing:
        killing.setattr(RunFolder, "drop_teachers", lambda _: stop_at(1)(None))
        with pytest.raises(StoppedError):
            ch.train(text, folder, resume=True, **given)
    assert weights(folder) == weights(whole)
    assert (folder / "teachers").exists()
    ch.train(text, folder, resume=True)
    assert not (folder / "teachers").exists()
    [found] = ch.runs(folder)
    assert (found.role, found.finished, is_extendable(found)) == ("student of 2 teachers", True, False)
    with pytest.raises(UserError, match="were deleted, but the run cannot be extended without them"):
        ch.train(text, folder, resume=True, steps=3)


def test_damaged_plan_is_reported(text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 2, "steps": STEPS, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(1), **given)
    path = folder / "teachers" / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "teachers": [1]}))
    with pytest.raises(UserError, match=r"plan\.json is damaged"):
        ch.train(text, folder, resume=True, **given)


@pytest.mark.parametrize("settings", [{"teachers": -1}, {"teachers": 65}, {"teachers": 1.5}])
def test_number_of_teachers_is_checked(settings, text):
    with pytest.raises(UserError, match="teachers = "):
        ch.train(text, steps=1, **settings)


@pytest.mark.parametrize("name", ["start", "bidirectional", "sharded"])
def test_settings_that_do_not_fit_are_rejected(name, text):
    value = "stories" if name == "start" else True
    with pytest.raises(UserError, match=f"`{name}` cannot be combined with `teachers`"):
        ch.train(text, steps=1, teachers=2, **{name: value})


@pytest.fixture(scope="module")
def planned(text):
    """A single run, planned for two minutes in `planned(steps)` steps."""
    request = TrainingRequest(minutes=2, **{**SMALL, "tokenizer": None})
    run = Run(list(documents([text])), TrainingRequest(steps=1, **SMALL))

    def choose(epochs, **changes):
        steps = round(epochs * len(run.tokens) / (4 * 16))
        plan = Plan(run.plan.config, _with(run.plan.recipe, steps=steps), validations=1, seconds=100.0)
        own = _with(request, **changes)
        return choose_teaching(own, {}, "", plan, run.tokens)

    return choose


def test_first_teacher_is_planned_without_measuring(text, tmp_path, work_clock, monkeypatch):
    """The plan of the single run is all that choosing the teachers requires."""
    given = {**SMALL, "minutes": 2, "tokenizer": None}
    run = Run(list(documents([text])), TrainingRequest(**given), tmp_path)
    monkeypatch.setattr(Measure, "take", None)
    chosen = plan_teaching(run.request, {}, "", FEW)
    plan = plan_first_teacher(chosen, run)
    assert plan.config == replace(run.plan.config, dropout=plan.config.dropout)
    assert plan.recipe.seed == chosen.request_of(1, run.request).seed
    assert plan.seconds == 60 * chosen.teachers[0].minutes
    share = plan.seconds / run.plan.seconds
    assert plan.recipe.steps == pytest.approx(share * run.plan.recipe.steps, rel=0.1)
    given = {"plan": plan, "is_teacher": True, "cache": tmp_path}
    teacher = Run(list(documents([text])), chosen.request_of(1, run.request), **given)
    assert teacher.model.config == plan.config


def _with(each, **changes):
    return type(each)(**vars(each) | changes)


def test_plan_chooses_teachers_if_the_text_would_be_repeated_often(planned):
    assert planned(100) is None
    plan = planned(300)
    assert plan.settings["width"] == 16  # as given
    assert (plan.count, plan.taught_by) == (FEW, [1, 2, 3, 4])
    assert 0.6 < sum(each.minutes for each in plan.teachers) < 1


@pytest.mark.parametrize(
    "changes",
    [{"teachers": 0}, {"minutes": 1.0}, {"minutes": None, "steps": 9}, {"recipe": "classic"}],
)
def test_plan_chooses_no_teachers_if_they_are_not_wanted(changes, planned):
    assert planned(300, **changes) is None


def test_students_teach_in_turn_if_there_is_time():
    plan = plan_teaching(TrainingRequest(minutes=10, device="cpu"), {}, "")
    assert plan.count == MANY + STUDENTS
    assert plan.taught_by == [MANY + 1 + i for i in range(STUDENTS)]
    assert [each.taught_by for each in plan.teachers[-STUDENTS:]] == [list(range(1, MANY + 1))] * STUDENTS
    assert 5 < sum(each.minutes for each in plan.teachers) < 7
    assert plan.up_to(MANY + 1).taught_by == [MANY + 1]
    assert plan.up_to(3).taught_by == [1, 2, 3]


def test_teachers_have_seeds_of_their_own():
    requests = [TrainingRequest(steps=1, seed=seed, device="cpu") for seed in (0, 1, 2**32 - 1)]
    plan = plan_teaching(requests[0], {}, "", 4)
    seeds = {plan.request_of(number, each).seed for each in requests for number in range(1, 5)}
    assert len(seeds) == 12


def test_plan_is_read_as_it_was_saved(tmp_path):
    plan = plan_teaching(TrainingRequest(minutes=1, device="cpu"), {"steps": None}, "abc", 3)
    plan.save(tmp_path)
    assert TeachingPlan.read(tmp_path) == plan


def test_student_that_teaches_learns_from_the_first_teachers(text, tmp_path):
    folder, given = tmp_path / "run", {"teachers": 3, "steps": 2, **SMALL}
    with pytest.raises(StoppedError):
        ch.train(text, folder, callbacks=stop_at(1), **given)
    path = folder / "teachers" / "plan.json"
    plan = json.loads(path.read_text())
    plan["teachers"][2]["taught_by"], plan["taught_by"] = [1, 2], [3]
    path.write_text(json.dumps(seal(plan)))
    model = ch.train(text, folder, resume=True, **given)
    third = ch.load(folder / "teachers" / "3", "cpu")
    assert third.training["from_teachers"] == [str(folder / "teachers" / each) for each in "12"]
    assert model.training["recipe"]["true_share"] == third.training["recipe"]["true_share"] < 1


@pytest.mark.parametrize(("speed", "count"), [(1e9, FEW), (10.0, None)])
def test_on_a_gpu_the_speed_decides(speed, count, text, tmp_path, monkeypatch):
    monkeypatch.setattr(teaching, "pick_device", lambda _: torch.device("cuda"))
    monkeypatch.setattr(teaching, "can_compile", lambda _: True)
    measured = Measure(4, 1 / speed, 1 / speed, bfloat16=False, threads=None)
    monkeypatch.setattr(Measure, "take", lambda *_: measured)
    request = TrainingRequest(minutes=2, device="cpu")
    plan = teaching.choose_on_gpu(request, {}, list(documents([text])), tmp_path)
    assert (None if plan is None else plan.count) == count
    if plan is not None:
        assert plan.settings["tokenizer"] == "byte"
        assert plan.settings["compiled"]
        assert plan.settings["width"] >= 32
        assert plan.settings["context"] == 128
        characters = replace(request, tokenizer="char")
        plan = teaching.choose_on_gpu(characters, {}, list(documents([text])), tmp_path)
        assert plan.settings["context"] == 256  # an eighth of the text
