"""Find runs and their teachers: `OUT/teachers/1`, … are the teachers that the run in `OUT` trained for itself.

While they are trained, `OUT` is not a run yet. Does not import torch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import UserError
from clearhead.files import read_sealed

TEACHERS, PLAN, RUN = "teachers", "plan.json", "run.json"
MOST_TEACHERS = 64


@dataclass(frozen=True)
class Teacher:
    """Which teacher a run is, and of which run."""

    number: int  # from 1
    count: int
    student: Path


def count_teachers(folder: Path) -> int:
    """The number of teachers that the run in this folder trains for itself, as planned; 0 without a readable plan."""
    path = folder / TEACHERS / PLAN
    try:
        count = read_sealed(path).get("count") if path.is_file() else None
    except (UserError, OSError):
        return 0
    return count if type(count) is int and 0 < count <= MOST_TEACHERS else 0


def teacher_in(folder: Path) -> Teacher | None:
    """The teacher in this folder; None if it is not one."""
    path = folder if len(folder.parts) > 2 else folder.absolute()
    number = int(path.name) if path.name.isascii() and path.name.isdecimal() else 0
    count = count_teachers(path.parents[1]) if number and path.parent.name == TEACHERS else 0
    return Teacher(number, count, path.parents[1]) if 1 <= number <= count else None


def lacks_teachers(folder: Path, request: Mapping[str, object]) -> bool:
    """Whether the run trained teachers for itself, and some of them have been deleted since."""
    if not request.get("teachers"):
        return False
    folders = [folder / TEACHERS / str(i) for i in range(1, count_teachers(folder) + 1)]
    return not folders or not all(each.is_dir() for each in folders)


def find_runs(places: Sequence[Path]) -> list[Path]:
    """The run folders among these places and directly inside them, each followed by those of its teachers."""
    found = [folder for place in places for folder in [place, *sorted(place.glob("*"))]]
    teachers = {folder: range(1, count_teachers(folder) + 1) for folder in found}
    both = [
        each for folder in found for each in (folder, *(folder / TEACHERS / str(i) for i in teachers[folder]))
    ]
    return [folder for folder in dict.fromkeys(both) if (folder / RUN).is_file()]
