"""Grading whole notebooks: points and reasons for what students hand in."""

import json
from copy import deepcopy

import pytest

from bench.classroom import CHEATS
from clearhead.classroom.course import EVERYONE, Course
from clearhead.classroom.execution import ProcessLimits
from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.grading import grade_course
from clearhead.classroom.notebook import student_notebook, teacher_notebook
from clearhead.classroom.sandbox import landlock_version

pytestmark = pytest.mark.slow

NAMES = [exercise.name for exercise in EXERCISES]
COURSE = Course(5)  # one set of data, which is drawn once
CHEAT_NAMES = ["import", "read", "equal", "forge", "patch"]
CHEATED = ("causal-weights", "why-this-blank")


def answer(document, name):
    mark = {"exercise": name, "role": "answer"}
    return next(cell for cell in document["cells"] if cell["metadata"].get("clearhead") == mark)


def replace(document, **answers):
    """A copy with different answers to some exercises."""
    document = deepcopy(document)
    for name, source in answers.items():
        answer(document, name.replace("_", "-"))["source"] = source
    return document


@pytest.fixture(scope="module")
def solution():
    return json.loads(json.dumps(teacher_notebook(COURSE.variants(EVERYONE), EVERYONE)))


def grade(documents, folder, limits):
    """Return each notebook's grades by exercise."""
    (folder / "submissions").mkdir()
    for student, document in documents.items():
        (folder / "submissions" / f"{student}.ipynb").write_text(json.dumps(document))
    results = grade_course(COURSE, folder, folder / "submissions", limits, jobs=1)
    return {result.student: {each.exercise: each for each in result.grades} for result in results}


@pytest.fixture(scope="module")
def graded(solution, limits, tmp_path_factory):
    """One class with all sorts of students."""
    folder = tmp_path_factory.mktemp("class")
    (folder / "solutions").mkdir()
    (folder / "solutions" / "x.ipynb").write_text(json.dumps(solution))

    unmarked = deepcopy(solution)
    unmarked["cells"] = [cell for cell in unmarked["cells"] if "HIDDEN TESTS" not in cell["source"]]
    for cell in unmarked["cells"]:
        cell["metadata"] = {}

    changed = replace(solution, query_and_keys="query_result = [1 / 2, 1 / 2]")
    for cell in changed["cells"]:
        if cell["metadata"].get("clearhead") == {"exercise": "query-and-keys", "role": "data"}:
            cell["source"] = "digits, base = [0, 1], 1"

    helped = replace(
        solution,
        one_head="import os; os._exit(3)",
        causal_weights="def causal_weights(S):\n"
        "    return helper(S.masked_fill(torch.ones_like(S).triu(1).bool(), -torch.inf))",
    )
    answer(helped, "simplest-attention")["source"] += "\n\ndef helper(s):\n    return s.softmax(-1)"

    documents = {
        "solved": solution,
        "untouched": student_notebook(COURSE.variants(EVERYONE), EVERYONE),
        "unmarked": unmarked,
        "changed": changed,
        "helped": helped,
        "mixed": replace(
            solution,
            simplest_attention="def simplest_attention(x):\n    return x",
            layer_norm="def layer_norm(x, gamma, beta):\n    raise ValueError('to do')",
            one_head="import os; os._exit(1)",
            patch_the_prompt="patched_probability = [0] * 10**12",
            chain_rule="",
            query_and_keys="query_result = [0, 1]",
            skip_gram_pairs="def skip_gram_pairs(words):\n    return []",
        ),
    }
    documents["saboteur"] = replace(solution, induction_head="torch.tensor = torch.ones_like = model = None")
    for name, cheat in zip(CHEAT_NAMES, CHEATS, strict=True):
        codes = {
            exercise.name: cheat.format(asks=exercise.asks, name=exercise.name, folder=folder, student="x")
            for exercise in EXERCISES
            if exercise.name in CHEATED
        }
        documents[name] = replace(solution, **codes)
    return grade(documents, folder, limits)


def test_solutions_get_all_points(graded):
    assert {each.reason for each in graded["solved"].values()} == {"passed"}
    assert sum(each.points for each in graded["solved"].values()) == 36


def test_untouched_notebook_gets_none(graded):
    assert {each.reason for each in graded["untouched"].values()} == {"missing: no answer was given"}
    assert sum(each.points for each in graded["untouched"].values()) == 0


def test_each_reason_is_one_line(graded):
    grades = graded["mixed"]
    reasons = {name: each.reason for name, each in grades.items() if each.status != "passed"}
    assert reasons.pop("simplest-attention").startswith("wrong for hidden input 2: got [[")
    assert reasons.pop("skip-gram-pairs").startswith("raised TypeError: skip_gram_pairs() takes 1")
    assert reasons == {
        "layer-norm": "raised ValueError: to do",
        "one-head": "ended the process with exit code 1",
        "patch-the-prompt": "out of memory",
        "chain-rule": "missing: log_probability is not defined",
        "query-and-keys": "wrong: got [0, 1]",
    }
    assert grades["why-this-blank"].points == 4  # what comes after is graded


def test_names_of_earlier_exercises_survive_a_crash(graded):
    """After one_head ends the process, the other cells run again in a new one."""
    assert [name for name in NAMES if graded["helped"][name].status != "passed"] == ["one-head"]


def test_sabotage_hurts_only_the_saboteur(graded):
    grades = graded["saboteur"]
    assert [grades[name].status for name in NAMES[:4]] == ["passed", "passed", "passed", "missing"]
    assert grades["causal-weights"].reason == "raised TypeError: 'NoneType' object is not callable"
    assert grades["boosted-keys"].status == "passed"


def test_changed_data_is_not_used(graded):
    """A student who replaces the data with easier numbers answers a different question."""
    assert graded["changed"]["query-and-keys"].status == "wrong"


def test_notebook_without_metadata_is_graded_by_names(graded):
    assert {each.status for each in graded["unmarked"].values()} == {"passed"}


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.parametrize("cheat", CHEAT_NAMES)
def test_cheats_get_no_points(cheat, graded):
    points = {name: each.points for name, each in graded[cheat].items()}
    assert [points[name] for name in CHEATED] == [0, 0]
    assert sum(points.values()) == 36 - 2 - 4


def test_hanging_exercises_do_not_take_the_others_down(solution, tmp_path):
    hanging = replace(
        solution, layer_norm="def layer_norm(*_):\n    while True: pass", boosted_keys="while True: pass"
    )
    grades = grade({"x": hanging}, tmp_path, ProcessLimits(seconds=300, cpu_seconds=15))["x"]
    assert {name: each.reason for name, each in grades.items() if each.status != "passed"} == dict.fromkeys(
        ("layer-norm", "boosted-keys"), "timed out after 15 s of CPU time"
    )


def test_bad_files_never_stop_the_grading(limits, tmp_path):
    folder = tmp_path / "submissions"
    folder.mkdir()
    (folder / "anna.ipynb").write_text("{")
    (folder / "zoe.ipynb").write_text("{}")
    (folder / "essay.pdf").write_bytes(b"%PDF")
    seen = []
    course = Course(5, ("anna", "ben", "essay"))
    results = grade_course(course, tmp_path, folder, limits, jobs=2, watch=seen.append)
    notes = {each.student: each.note for each in results}
    assert "not valid JSON" in notes["anna"]
    assert notes["zoe"] == "not in the list of students"
    assert notes["ben"] == "no submission"
    assert notes["essay"].startswith("not a notebook")
    assert len(seen) == 3
    assert not any(result.confined is False for result in results)
    assert sum(each.points for each in results) == 0


def test_exchanged_notebook_is_noted(limits, tmp_path):
    """Ben hands in what was made for Anna: a notebook with a cell for one exercise."""
    mark = {"clearhead": {"exercise": "boosted-keys", "role": "answer"}}
    cell = {"cell_type": "code", "metadata": mark, "source": "boost = 1"}
    document = {"nbformat": 4, "metadata": {"clearhead": {"student": "anna\x1b[31m"}}, "cells": [cell]}
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ben.ipynb").write_text(json.dumps(document))
    (result,) = grade_course(Course(5, ("ben",)), tmp_path, tmp_path / "submissions", limits, jobs=1)
    assert result.note == "the notebook was made for 'anna [31m'"
    assert {each.exercise for each in result.grades if each.status == "wrong"} == {"boosted-keys"}
