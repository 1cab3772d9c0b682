"""A class: its seed, its students, and the folder with their notebooks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from clearhead.classroom.exercise import Exercise, Variant, make_variant
from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.notebook import FORMAT, otter_notebook, student_notebook, teacher_notebook
from clearhead.errors import UserError
from clearhead.files import (
    check_seal,
    disk_errors,
    read_own_json,
    read_own_text,
    seal,
    write_json,
    write_text,
)
from clearhead.labs.small_networks import one_thread

EVERYONE = "everyone"  # the name of the notebook if all students get the same data
ASSIGNMENT = "lectures"
NAME = re.compile(r"\w(?:[\w .@+-]{0,62}[\w@+-])?")
MOST_STUDENTS = 10_000
NBGRADER_CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "clearhead"
c.ClearSolutions.code_stub = {"python": "..."}
c.ExecutePreprocessor.timeout = 60
"""


@dataclass(frozen=True)
class Course:
    """The seed of a class and its students. Without students, there is one notebook for all."""

    seed: int
    students: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed = {self.seed}: expected a number from 0 to 2**63 - 1")
        if len(self.students) > MOST_STUDENTS:
            raise UserError(f"{len(self.students)} students are too many: expected at most {MOST_STUDENTS}")
        for student in self.students:
            if not NAME.fullmatch(student) or student == EVERYONE:
                raise UserError(
                    f"{student[:80]!r} cannot be used as a file name: use letters, digits, spaces and . @ + - _"
                )
        for name, count in Counter(student.casefold() for student in self.students).items():
            if count > 1:
                raise UserError(f"the student {name!r} is listed twice: give each student a unique name")

    @property
    def notebooks(self) -> tuple[str, ...]:
        return self.students or (EVERYONE,)

    def variants(self, student: str) -> list[Variant]:
        """The exercises with a student's data."""
        name = student if student in self.students else EVERYONE
        return list(_draw(tuple(EXERCISES), self.seed, name))


@lru_cache(maxsize=8)
def _draw(exercises: tuple[Exercise, ...], seed: int, name: str) -> tuple[Variant, ...]:
    return tuple(make_variant(exercise, seed, name) for exercise in exercises)


def read_students(path: Path) -> tuple[str, ...]:
    """Read one student per line (in a CSV file, the first column); skip empty lines and lines that start with #."""
    text = read_own_text(path, "a text file with one student per line").removeprefix("\ufeff")
    lines = [line.split(",")[0].split(";")[0].strip().strip('"') for line in text.splitlines()]
    students = tuple(line for line in lines if line and not line.startswith("#"))
    if not students:
        raise UserError(f"{path} lists no students: expected one per line")
    return students


def write_course(course: Course, folder: Path, watch: Callable[[int], object] = lambda _: None) -> list[Path]:
    """Write a class to a new folder and return its files; `watch` is called with the number written so far."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists: name a new or empty folder")
    written: list[Path] = []

    def write(path: Path, save: Callable[[Path], None]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path)
        written.append(path)

    def write_notebook(path: Path, document: dict[str, Any]) -> None:
        write(path, partial(write_json, document=document))

    with one_thread(), disk_errors(folder, "the class was not written completely"):
        for number, student in enumerate(course.notebooks, 1):
            variants = course.variants(student)
            write_notebook(folder / "notebooks" / f"{student}.ipynb", student_notebook(variants, student))
            write_notebook(folder / "solutions" / f"{student}.ipynb", teacher_notebook(variants, student))
            watch(number)
        common = course.variants(EVERYONE)
        source = folder / "nbgrader" / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        write_notebook(source, teacher_notebook(common, EVERYONE))
        write(folder / "nbgrader" / "nbgrader_config.py", partial(write_text, text=NBGRADER_CONFIG))
        write_notebook(folder / "otter" / f"{ASSIGNMENT}.ipynb", otter_notebook(common))
        (folder / "submissions").mkdir()
        description = seal({"format": FORMAT, "seed": course.seed, "students": list(course.students)})
        write(
            folder / "class.json", partial(write_json, document=description)
        )  # last: it marks a complete class
    return written


def read_course(folder: Path) -> Course:
    path = folder / "class.json"
    if not path.is_file():
        around = next((each for each in folder.absolute().parents if (each / "class.json").is_file()), None)
        if folder.exists() and around is not None:
            raise UserError(f"{folder} is part of a class: name the folder of the class, {around}")
    if folder.is_file():
        raise UserError(f"{folder} is a file: name the folder of a class, as created by clearhead class new")
    if not folder.is_dir():
        raise UserError(f"no such folder: {folder}; make one: clearhead class new {folder} --seed 1")
    if not path.is_file():
        raise UserError(f"{folder} is not a class: it has no class.json; see clearhead class new --help")
    document = check_seal(path, read_own_json(path, "the class.json of a class"))
    students = document.get("students")
    seed = document.get("seed")
    if document.get("format") != FORMAT or type(seed) is not int or not _is_list_of_names(students):
        raise UserError(
            f"{path} is damaged: expected a format, a seed and students, as written by clearhead class new"
        )
    assert students is not None
    return Course(seed, tuple(students))


def _is_list_of_names(students: object) -> bool:
    return isinstance(students, list) and all(isinstance(student, str) for student in students)
