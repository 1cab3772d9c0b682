"""The notebooks: valid and complete, and the students' contain no solutions or hidden tests."""

import json

import pytest

from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.notebook import marked_solution, otter_notebook, student_notebook, teacher_notebook


def cells(document, role):
    return [cell for cell in document["cells"] if cell["metadata"].get("clearhead", {}).get("role") == role]


@pytest.mark.parametrize("make", [student_notebook, teacher_notebook])
def test_notebooks_are_valid(make, variants):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[dev]'")
    nbformat.validate(make(variants, "anna"))
    nbformat.validate(otter_notebook(variants))


def test_student_notebook_has_no_solutions_or_hidden_tests(untouched):
    text = json.dumps(untouched)
    for sign in ("SOLUTION", "HIDDEN", "reference()", "clearhead.classroom", "Random("):
        assert sign not in text
    for exercise, cell in zip(EXERCISES, cells(untouched, "answer"), strict=True):
        assert cell["source"] == exercise.starter
    for exercise, cell in zip(EXERCISES, cells(untouched, "test"), strict=True):
        assert cell["source"] == exercise.visible


def test_student_notebook_has_the_students_data(untouched, variants):
    for variant, cell in zip(variants, cells(untouched, "data"), strict=True):
        assert cell["source"] == variant.data_code()
    assert untouched["metadata"]["clearhead"]["student"] == "anna"


def test_teacher_notebook_runs_from_top_to_bottom(solved):
    names = {}
    for cell in solved["cells"]:
        if cell["cell_type"] == "code":
            exec(cell["source"], names)


def test_nbgrader_metadata(solved):
    answers, tests = cells(solved, "answer"), cells(solved, "test")
    assert sum(cell["metadata"]["nbgrader"]["points"] for cell in tests) == 36
    ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in answers + tests]
    assert len(set(ids)) == 24
    for cell in answers:
        assert "### BEGIN SOLUTION" in cell["source"]
        assert cell["metadata"]["nbgrader"]["solution"]
    for cell in tests:
        assert "### BEGIN HIDDEN TESTS" in cell["source"]
        assert cell["metadata"]["nbgrader"]["locked"]


def test_first_line_of_a_function_stays_outside_the_markers():
    lines = marked_solution(EXERCISES[0], "# BEGIN", "# END").splitlines()
    assert lines[0].startswith("def simplest_attention")
    assert lines[1] == "    # BEGIN"
    assert lines[-1] == "    # END"
