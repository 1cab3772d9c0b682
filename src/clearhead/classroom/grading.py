"""Grading: run each submission in a process with limits, and compare its answers with the solutions'."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.classroom.answers import plain, same, shown
from clearhead.classroom.course import EVERYONE, Course
from clearhead.classroom.execution import (
    ProcessEndedError,
    ProcessLimits,
    Runner,
    SubmissionError,
    SubmissionProcess,
    one_line,
)
from clearhead.classroom.exercise import SETUP, Variant
from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.submission import HandedIn, Submission, find_submissions, read_submission
from clearhead.errors import UserError

MOST_HANGS = 6  # a submission that takes this many times the time limit is not graded further


@dataclass(frozen=True)
class Grade:
    """The points for one exercise, and the reason: a status for statistics and a sentence for people."""

    exercise: str
    points: int
    most_points: int
    status: str  # passed, wrong, error, timed out, out of memory, ended, missing or unreadable
    reason: str


@dataclass(frozen=True)
class StudentGrades:
    """The grades of one student. `note` says what is wrong with the submission as a whole."""

    student: str
    grades: list[Grade]
    note: str = ""
    confined: bool = True

    @property
    def points(self) -> int:
        return sum(grade.points for grade in self.grades)


def grade_course(
    course: Course,
    folder: Path,
    submissions: Path,
    limits: ProcessLimits,
    jobs: int = 0,
    watch: Callable[[StudentGrades], object] = lambda _: None,
    skipped: Callable[[list[str]], object] = lambda _: None,
) -> list[StudentGrades]:
    """Grade every submission; `watch` is called with each result. Students without a submission get no points.

    `skipped` is called with the names of files that are not notebooks.
    """
    handed_in, others = find_submissions(submissions, course.students)
    if others:
        skipped(others)
    graders: list[_Grader] = []
    local = threading.local()

    def grade(each: HandedIn) -> StudentGrades:
        if not hasattr(local, "grader"):
            local.grader = _Grader(course, [folder, submissions], limits)
            graders.append(local.grader)
        result: StudentGrades = local.grader.grade(each)
        watch(result)
        return result

    try:
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            results = list(pool.map(grade, handed_in))
    finally:
        for grader in graders:
            grader.close()
    absent = set(course.students) - {each.student for each in handed_in}
    return results + [_ungraded(student, "missing", "no submission") for student in sorted(absent)]


class _Grader:
    """Grades one submission after another. Each thread has its own grader."""

    def __init__(self, course: Course, hidden: list[Path], limits: ProcessLimits) -> None:
        self.course, self.hidden, self.limits = course, hidden, limits
        self.runner: Runner | None = None

    def close(self) -> None:
        if self.runner is not None:
            self.runner.close()

    def grade(self, handed_in: HandedIn) -> StudentGrades:
        student = handed_in.student
        if self.course.students and student not in self.course.students:
            return _ungraded(student, "unreadable", "not in the list of students")
        try:
            submission = read_submission(handed_in.path, EXERCISES)
        except (UserError, OSError) as error:
            return _ungraded(student, "unreadable", one_line(error))
        try:
            return self._run(student, submission, self.course.variants(student))
        except OSError as error:  # such as no memory for another process
            return _ungraded(student, "error", f"not graded: {one_line(error)}")

    def _run(self, student: str, submission: Submission, variants: Sequence[Variant]) -> StudentGrades:
        """Grade all exercises. If one ends the process, grade the rest in a new process without it."""
        grades: dict[str, Grade] = {}
        preamble, confined = submission.preamble, True
        deadline = time.monotonic() + MOST_HANGS * self.limits.seconds
        while len(grades) < len(variants):
            current: Variant | None = None
            try:
                with self._start() as process:
                    confined = process.confined
                    process.run(SETUP)
                    _run_cells(process, preamble)
                    for current in variants:
                        name = current.exercise.name
                        if name not in grades:
                            if time.monotonic() > deadline:
                                raise ProcessEndedError("not graded: the exercises before it took too long")
                            grades[name] = grade_exercise(process, current, submission.cells.get(name, []))
                        elif grades[name].status not in ENDS_PROCESS:  # later cells may use its names
                            _run_cells(process, [current.data_code(), *submission.cells.get(name, [])])
            except (ProcessEndedError, SubmissionError) as error:
                if current is None:
                    if not preamble:
                        return _ungraded(student, "error", f"the model did not load: {error}")
                    preamble = []  # the process ended before the first exercise
                elif current.exercise.name in grades:  # it was graded before, in an earlier process
                    submission.cells.pop(current.exercise.name)
                else:
                    grades[current.exercise.name] = _grade_failed(current, str(error))
        ordered = [grades[variant.exercise.name] for variant in variants]
        other = submission.made_for not in ("", EVERYONE, student)
        note = f"the notebook was made for {submission.made_for!r}" if other and self.course.students else ""
        return StudentGrades(student, ordered, note, confined)

    def _start(self) -> SubmissionProcess:
        if self.runner is None or not self.runner.is_running:
            self.close()
            self.runner = Runner()
        return SubmissionProcess(self.runner, self.limits, self.hidden)


ENDS_PROCESS = ("timed out", "ended")


def grade_exercise(process: SubmissionProcess, variant: Variant, cells: Sequence[str]) -> Grade:
    """Run the cells of an exercise, and compare what they define with the solution."""
    exercise = variant.exercise
    if not cells:
        return _grade(variant, "missing", "missing: the notebook has no cell for this exercise")
    error = _run_cells(process, [variant.data_code(), *cells])
    try:
        if exercise.is_function:
            return _check_calls(process, variant)
        value = process.value(exercise.asks)
    except SubmissionError as failure:
        return _grade_failed(variant, error or str(failure))
    return _compare(variant, value, variant.solve(), "")


def _check_calls(process: SubmissionProcess, variant: Variant) -> Grade:
    solution, grade = variant.solve(), None
    for number, case in enumerate(variant.cases(), 1):
        value = process.call(variant.exercise.asks, case)
        grade = _compare(variant, value, solution(*case), f" for hidden input {number}")
        if grade.status != "passed":
            return grade
    assert grade is not None, f"{variant.exercise.name} has no hidden tests"
    return grade


def _compare(variant: Variant, value: Any, expected: Any, where: str) -> Grade:
    if value is None:
        return _grade(variant, "missing", "missing: no answer was given")
    if same(value, plain(expected)):
        return _grade(variant, "passed", "passed")
    return _grade(variant, "wrong", f"wrong{where}: got {shown(value)}")


def _run_cells(process: SubmissionProcess, cells: Sequence[str]) -> str:
    """Run cells one after another, as a notebook does; returns the first error."""
    first = ""
    for cell in cells:
        try:
            process.run(cell)
        except SubmissionError as error:
            first = first or str(error)
    return first


def _grade_failed(variant: Variant, reason: str) -> Grade:
    if reason.endswith(" is not defined") and variant.exercise.asks in reason:
        return _grade(variant, "missing", f"missing: {variant.exercise.asks} is not defined")
    for status in ("timed out", "out of memory"):
        if reason.startswith(status):
            return _grade(variant, status, reason)
    return _grade(variant, "error" if reason.startswith("raised") else "ended", reason)


def _grade(variant: Variant, status: str, reason: str) -> Grade:
    exercise = variant.exercise
    points = exercise.points if status == "passed" else 0
    return Grade(exercise.name, points, exercise.points, status, reason)


def _ungraded(student: str, status: str, note: str) -> StudentGrades:
    grades = [Grade(exercise.name, 0, exercise.points, status, note) for exercise in EXERCISES]
    return StudentGrades(student, grades, note)
