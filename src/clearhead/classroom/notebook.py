"""Notebooks with the exercises: for students, for the teacher and nbgrader, and for Otter Assign."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from clearhead.classroom.exercise import SETUP, Exercise, Variant
from clearhead.classroom.exercises import LECTURES

FORMAT = 1
NBGRADER = {"schema_version": 3, "task": False}
INTRODUCTION = """\
# Exercises on the three lectures

Each exercise asks for one function or one variable. Write your answer in the cell that contains `...`, and run the
tests below it. The teacher's tests also use other inputs. Keep the names as they are. You may add cells.

Start by running the next cell, which loads a small model that ships with Clearhead."""

Cell = dict[str, Any]


def student_notebook(variants: Sequence[Variant], student: str) -> dict[str, Any]:
    """What a student gets: the data, an empty answer and the visible tests."""
    return _notebook(variants, student, with_solutions=False)


def teacher_notebook(variants: Sequence[Variant], student: str) -> dict[str, Any]:
    """A student's notebook plus solutions and hidden tests, marked so that nbgrader can remove them."""
    return _notebook(variants, student, with_solutions=True)


def _notebook(variants: Sequence[Variant], student: str, with_solutions: bool) -> dict[str, Any]:
    cells = [_markdown(INTRODUCTION), _code(SETUP, {"clearhead": {"role": "setup"}})]
    lecture = None
    for number, variant in enumerate(variants, 1):
        exercise = variant.exercise
        if exercise.lecture != lecture:
            lecture = exercise.lecture
            cells.append(_markdown(f"## Lecture {lecture}: {LECTURES[lecture]}"))
        cells.append(_markdown(heading(number, exercise)))
        cells.append(_code(variant.data_code(), _mark(exercise, "data")))
        answer = exercise.starter
        tests = exercise.visible
        if with_solutions:
            answer = marked_solution(exercise, "### BEGIN SOLUTION", "### END SOLUTION")
            tests += f"\n### BEGIN HIDDEN TESTS\n{variant.hidden_code()}\n### END HIDDEN TESTS"
        cells.append(_code(answer, {**_mark(exercise, "answer"), "nbgrader": _nbgrader(exercise)}))
        cells.append(_code(tests, {**_mark(exercise, "test"), "nbgrader": _nbgrader(exercise, graded=True)}))
    return _document(cells, {"clearhead": {"format": FORMAT, "student": student}})


def otter_notebook(variants: Sequence[Variant]) -> dict[str, Any]:
    """The source of an assignment for `otter assign`."""
    settings = "# ASSIGNMENT CONFIG\ninit_cell: true\nexport_cell: false\ncheck_all_cell: false\n"
    cells = [_raw(settings), _markdown(INTRODUCTION), _code(SETUP)]
    for number, variant in enumerate(variants, 1):
        exercise = variant.exercise
        name = exercise.name.replace("-", "_")
        cells += [
            _code(variant.data_code()),
            _raw(f"# BEGIN QUESTION\nname: {name}\npoints: [0, {exercise.points}]"),  # visible, hidden
            _markdown(heading(number, exercise)),
            _raw("# BEGIN SOLUTION"),
            _code(marked_solution(exercise, "# BEGIN SOLUTION", "# END SOLUTION")),
            _raw("# END SOLUTION"),
            _raw("# BEGIN TESTS"),
            _code(exercise.visible),
            _code(f"# HIDDEN\n{variant.hidden_code()}"),
            _raw("# END TESTS"),
            _raw("# END QUESTION"),
        ]
    return _document(cells, {})


def heading(number: int, exercise: Exercise) -> str:
    return f"### {number}. {exercise.title} ({exercise.points} points)\n\n{exercise.text}"


def marked_solution(exercise: Exercise, begin: str, end: str) -> str:
    """The solution between two markers; the first line of a function stays outside."""
    if not exercise.is_function:
        return f"{begin}\n{exercise.solution}\n{end}"
    first, body = exercise.solution.split("\n", 1)
    return f"{first}\n{textwrap.indent(begin, '    ')}\n{body}\n{textwrap.indent(end, '    ')}"


def _mark(exercise: Exercise, role: str) -> dict[str, Any]:
    return {"clearhead": {"exercise": exercise.name, "role": role}}


def _nbgrader(exercise: Exercise, graded: bool = False) -> dict[str, Any]:
    if graded:
        points = {"points": exercise.points, "grade_id": f"test-{exercise.name}"}
        return {**NBGRADER, **points, "grade": True, "locked": True, "solution": False}
    return {**NBGRADER, "grade_id": exercise.name, "grade": False, "locked": False, "solution": True}


def _markdown(source: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _raw(source: str) -> Cell:
    return {"cell_type": "raw", "metadata": {}, "source": source}


def _code(source: str, metadata: dict[str, Any] | None = None) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata or {},
        "outputs": [],
        "source": source,
    }


def _document(cells: list[Cell], metadata: dict[str, Any]) -> dict[str, Any]:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}, **metadata},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
