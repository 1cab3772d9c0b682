"""Teachers and students among the runs on disk."""

import json
import shutil

import pytest

import clearhead as ch
from clearhead.cli.runs import _describe
from clearhead.files import seal
from clearhead.runs.listing import describe_run, is_extendable
from clearhead.runs.teacher_folders import count_teachers, find_runs, teacher_in

SMALL = {"steps": 2, "blocks": 1, "heads": 1, "width": 8, "batch": 2, "device": "cpu"}
COMMAND = ["clearhead", "train", "my.txt", "--teachers", "2", "--out", "runs/my"]


def set_run(folder, **changes):
    settings = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(seal(settings | changes)))


@pytest.fixture(scope="module")
def trained(story_file, tmp_path_factory):
    """Two teachers, and their student in a folder of its own."""
    place = tmp_path_factory.mktemp("taught")
    teachers = [place / "my" / "teachers" / number for number in ("1", "2")]
    for seed, teacher in enumerate(teachers):
        ch.train(story_file, teacher, seed=seed, tokenizer="char", context=16, **SMALL)
    (place / "my" / "teachers" / "plan.json").write_text(json.dumps({"format": 1, "count": 2}))
    ch.train(story_file, place / "student", from_teachers=teachers, **SMALL)
    return place


@pytest.fixture
def runs(trained, tmp_path, monkeypatch):
    """The teachers of a run that has not started."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained / "my", tmp_path / "runs" / "my")
    return tmp_path / "runs"


@pytest.fixture
def student(runs, trained):
    """The student of these teachers, as a run that trained them itself."""
    shutil.copytree(trained / "student", runs / "my", dirs_exist_ok=True)
    request = json.loads((runs / "my" / "run.json").read_text())["request"]
    set_run(runs / "my", request=request | {"teachers": 2, "from_teachers": None})
    return runs / "my"


def test_teachers_are_found_before_their_student_starts(runs):
    teachers = [runs / "my" / "teachers" / number for number in ("1", "2")]
    assert find_runs([runs]) == find_runs([runs / "my"]) == find_runs([runs / "my" / "teachers"]) == teachers
    first, second = ch.runs()
    assert [first.role, second.role] == ["teacher 1 of 2", "teacher 2 of 2"]
    assert (first.teacher, first.teachers, first.student.resolve()) == (1, 2, runs / "my")
    assert ch.runs()["my/teachers/2"] == second
    assert repr(second).endswith("teacher 2 of 2, finished)")
    assert "teacher 1 of 2, finished" in repr(ch.runs())
    assert "teacher 1 of 2, finished" in ch.runs()._repr_html_()


def test_student_is_followed_by_its_teachers(student, runs):
    assert [run.name for run in ch.runs()] == ["my", "my/teachers/1", "my/teachers/2"]
    found = ch.runs()["my"]
    assert (found.role, found.teachers, found.teacher, found.student) == (
        "student of 2 teachers",
        2,
        None,
        None,
    )
    assert repr(found).endswith("student of 2 teachers, finished)")


def test_student_of_models_given_by_name(trained):
    assert describe_run(trained / "student").role == "student of 2 teachers"


def test_loss_on_a_part_of_the_held_out_text_is_marked(runs):
    first, second = ch.runs()
    assert second.validated_share == 1
    set_run(first.folder, held_out_tokens=4 * first.validation_tokens)
    marked, _ = ch.runs()
    assert marked.validated_share == 0.25
    assert f": ~{first.bits_per_byte:.4f} bits per byte" in repr(marked).replace(", ~", ": ~")
    table = repr(ch.runs())
    assert f"~{first.bits_per_byte:.4f}" in table
    assert f"~{second.bits_per_byte:.4f}" not in table
    assert table.endswith(
        "~ measured on a part of the held-out text, for lack of time: do not compare it with other losses"
    )


def test_teachers_can_be_deleted(student):
    shutil.rmtree(student / "teachers")
    [found] = ch.runs()
    assert found.role == "student of 2 teachers"


def test_teacher_cannot_be_extended(student):
    for folder in (student, student / "teachers" / "1"):
        set_run(folder, command=COMMAND)
    assert is_extendable(describe_run(student))
    assert not is_extendable(describe_run(student / "teachers" / "1"))
    shutil.rmtree(student / "teachers" / "2")  # a student learns from its teachers in an extension too
    assert not is_extendable(describe_run(student))


def test_interrupted_teacher_is_resumed_with_its_student(runs):
    """Before the student has started, the folder of each teacher holds the command."""
    for number in ("1", "2"):
        set_run(runs / "my" / "teachers" / number, command=COMMAND, finished=number == "1")
    expected = f"clearhead train my.txt --teachers 2 --out {runs / 'my'} --resume"
    assert {_describe(folder)["resume"] for folder in find_runs([runs])} == {expected}


def test_started_student_is_resumed_itself(student, runs):
    set_run(student, command=COMMAND, finished=False)
    resumed = [_describe(folder)["resume"] for folder in find_runs([runs])]
    assert resumed == [f"clearhead train my.txt --teachers 2 --out {student} --resume", None, None]


@pytest.mark.parametrize(
    "plan", ["", "[]", "{}", '{"count": "2"}', '{"count": 0}', '{"count": 1000000000000}']
)
def test_folder_with_a_damaged_plan_holds_no_teachers(runs, plan):
    (runs / "my" / "teachers" / "plan.json").write_text(plan)
    assert count_teachers(runs / "my") == 0
    assert find_runs([runs]) == []
    assert teacher_in(runs / "my" / "teachers" / "1") is None


def test_only_planned_folders_are_teachers(runs, monkeypatch):
    teachers = runs / "my" / "teachers"
    for name in ("0", "3", "one", "²"):
        shutil.copytree(teachers / "1", teachers / name)
        assert teacher_in(teachers / name) is None
    assert len(find_runs([runs])) == 2
    monkeypatch.chdir(teachers)
    assert ch.runs("1")[0].role == "teacher 1 of 2"
