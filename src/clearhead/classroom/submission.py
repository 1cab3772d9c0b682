"""What students hand in: found in a folder, read as untrusted data, and split into the cells of each exercise."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clearhead.classroom.execution import one_line
from clearhead.classroom.exercise import Exercise
from clearhead.classroom.runner import without_magic
from clearhead.errors import UserError
from clearhead.files import read_own_json

OWN_ROLES = ("setup", "data", "test")  # cells that the grader does not take from a submission


@dataclass(frozen=True)
class Submission:
    """The code cells of a notebook: those before the first exercise, and those of each exercise by name."""

    preamble: list[str] = field(default_factory=list)
    cells: dict[str, list[str]] = field(default_factory=dict)
    made_for: str = ""  # the student in the metadata, if any


@dataclass(frozen=True)
class HandedIn:
    """A file or folder in the folder of submissions, and the student it is named after."""

    student: str
    path: Path


def find_submissions(folder: Path, students: Sequence[str] = ()) -> tuple[list[HandedIn], list[str]]:
    """Find submissions by student (`anna.ipynb`, or a folder `anna` with one notebook); also return all other names.

    Student names are matched case-insensitively. Hidden files are skipped.
    """
    if not folder.is_dir():
        raise UserError(f"no such folder: {folder}; put the submissions there, each named after its student")
    known = {student.casefold(): student for student in students}
    found, others = [], []
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__"))):
        name = one_line(path.name if path.is_dir() else path.stem)
        if (
            name.casefold() in known
            or path.suffix == ".ipynb"
            or (path.is_dir() and any(path.glob("*.ipynb")))
        ):
            found.append(HandedIn(known.get(name.casefold(), name), path))
        else:
            others.append(one_line(path.name))
    return found, others


def read_submission(path: Path, exercises: Sequence[Exercise]) -> Submission:
    """Read a notebook, or the only one in a folder. Raises UserError for anything else."""
    if path.is_symlink():
        raise UserError("is a link: hand in the file itself")
    if path.is_dir():
        path = _only_notebook(path)
    if path.suffix != ".ipynb":
        raise UserError(f"not a notebook: {path.name!r} does not end in .ipynb")
    return split(read_own_json(path, "a notebook"), exercises)


def _only_notebook(folder: Path) -> Path:
    found = [
        path for path in sorted(folder.iterdir()) if path.suffix == ".ipynb" and not path.name.startswith(".")
    ]
    if len(found) != 1:
        raise UserError(f"the folder has {len(found)} notebooks: expected one")
    if found[0].is_symlink():
        raise UserError("is a link: hand in the file itself")
    return found[0]


def split(document: dict[str, Any], exercises: Sequence[Exercise]) -> Submission:
    """Assign each code cell to the exercise that it is marked for, or whose answer it defines, or that it follows."""
    if document.get("nbformat") != 4 or not isinstance(document.get("cells"), list):
        raise UserError("not a notebook of format 4: save it again with a current version of Jupyter")
    names = {exercise.asks: exercise.name for exercise in exercises}
    known = set(names.values())
    submission, current = Submission(made_for=_made_for(document.get("metadata"))), None
    for mark, source in _code_cells(document["cells"]):
        marked = mark.get("exercise")
        if isinstance(marked, str) and marked in known:
            current = marked
        if mark.get("role") in OWN_ROLES:
            continue
        if not mark:
            current = next((names[name] for name in _defined(source) if name in names), current)
        target = submission.preamble if current is None else submission.cells.setdefault(current, [])
        target.append(source)
    return submission


def _made_for(metadata: object) -> str:
    mark = metadata.get("clearhead") if isinstance(metadata, dict) else None
    student = mark.get("student") if isinstance(mark, dict) else None
    return one_line(student) if isinstance(student, str) else ""


def _code_cells(cells: list[Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        metadata = cell.get("metadata")
        mark = metadata.get("clearhead") if isinstance(metadata, dict) else None
        if isinstance(source, str):
            yield mark if isinstance(mark, dict) else {}, source


def _defined(source: str) -> list[str]:
    """The functions and variables that a cell defines; nothing if it is not valid Python."""
    try:
        body = ast.parse(without_magic(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    for node in body:
        if isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names
