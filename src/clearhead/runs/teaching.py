"""The teachers of a run that trains its own: how many, for how long, and which learn from which.

Each is an ordinary run inside the run folder; the run itself is their student.

teachers/plan.json   the plan
teachers/1/ …        the teachers, in the order in which they are trained
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.files import read_json, write_json
from clearhead.model.config import Config
from clearhead.runs.plan import Plan
from clearhead.runs.recipes import MOST_EPOCHS
from clearhead.runs.request import TrainingRequest
from clearhead.runtime.device import can_compile
from clearhead.text.tokens import Tokens

TEACHERS, PLAN = "teachers", "plan.json"
FORMAT = 1

# When and how, as measured (docs/experiments.md).
LEAST_EPOCHS, LEAST_MINUTES = MOST_EPOCHS, 1.5  # that a single model would train
MANY_EPOCHS = 1000  # from which bytes are better tokens than those of BPE, and several generations may pay
LEAST_MINUTES_OF_GENERATIONS = 5.0
FEW, MANY, STUDENTS = 4, 8, 2  # teachers of a student; of students that teach in their turn; such students
TEACHING_SHARE = 0.35  # of the time, for all teachers
SHARES_OF_GENERATIONS = (0.22, 0.3)  # of the time, for the first teachers and for their students
WORTH_COMPILING = 30.0  # seconds of training all teachers
MOST_BYTES = 2_000_000  # of a text in which bytes are the tokens

APART = 1009  # between the seeds of runs, for teachers of their own


@dataclass(frozen=True)
class TeacherPlan:
    minutes: float | None  # None if the number of steps is given
    taught_by: list[int]  # the numbers of its own teachers


@dataclass(frozen=True)
class TeachingPlan:
    request: dict[str, Any]  # of the user
    text_sha256: str
    settings: dict[str, Any]  # chosen for the teachers
    teachers: list[TeacherPlan]
    taught_by: list[int]  # the numbers of the student's teachers
    seconds: float | None = None  # spent so far, of a timed run

    @property
    def count(self) -> int:
        return len(self.teachers)

    def request_of(self, number: int, request: TrainingRequest) -> TrainingRequest:
        """The request of a teacher."""
        seed = (APART * request.seed + number) % 2**32
        minutes = self.teachers[number - 1].minutes
        return replace(request, **self.settings, minutes=minutes, seed=seed, teachers=0)

    def save(self, folder: Path) -> None:
        (folder / TEACHERS).mkdir(parents=True, exist_ok=True)
        write_json(folder / TEACHERS / PLAN, {"format": FORMAT, "count": self.count, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> TeachingPlan | None:
        """The plan of an earlier process, if there is one."""
        path = folder / TEACHERS / PLAN
        if not path.exists():
            return None
        saved = read_json(path)
        try:
            if saved.pop("format") != FORMAT:
                raise ValueError("its format is unknown")
            del saved["count"]
            return cls(**saved | {"teachers": [TeacherPlan(**each) for each in saved["teachers"]]})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is damaged ({error}): start in another folder") from None


def has_teachers(folder: Path) -> bool:
    """Whether teachers were planned for the run in this folder, which may not have started itself."""
    return (folder / TEACHERS / PLAN).exists()


def teacher_folder(folder: Path, number: int) -> Path:
    return folder / TEACHERS / str(number)


def teachers_of(folder: Path, request: TrainingRequest) -> list[str] | None:
    """The student's teachers, if the run in the folder trains its own."""
    if not request.teachers:
        return None
    plan = TeachingPlan.read(folder)
    numbers = [] if plan is None else plan.taught_by
    folders = [teacher_folder(folder, number) for number in numbers]
    if not folders or not all(each.is_dir() for each in folders):
        raise UserError(
            f"the teachers in {folder / TEACHERS} were deleted: the run cannot learn from them any longer; to train "
            "its model further, fine-tune it in another folder, with `start`"
        )
    return [str(each) for each in folders]


def plan_teaching(
    request: TrainingRequest, saved_request: dict[str, Any], text_sha256: str, count: int | None = None
) -> TeachingPlan:
    """The plan for a number of teachers; without one, for two generations of them."""
    minutes, settings = request.minutes, {}
    compiles = minutes is not None and 60 * minutes * TEACHING_SHARE >= WORTH_COMPILING
    if compiles and request.compiled is None and can_compile(torch.device(request.device or "cuda")):
        settings["compiled"] = True
    if count is not None:
        each = None if minutes is None else TEACHING_SHARE * minutes / count
        teachers = [TeacherPlan(each, []) for _ in range(count)]
        numbers = list(range(1, count + 1))
    else:
        assert minutes is not None
        first, second = (share * minutes for share in SHARES_OF_GENERATIONS)
        early = list(range(1, MANY + 1))
        teachers = [TeacherPlan(first / MANY, []) for _ in early]
        teachers += [TeacherPlan(second / STUDENTS, early) for _ in range(STUDENTS)]
        numbers = [MANY + i + 1 for i in range(STUDENTS)]
    return TeachingPlan(saved_request, text_sha256, settings, teachers, numbers)


def choose_teaching(
    request: TrainingRequest,
    saved_request: dict[str, Any],
    text_sha256: str,
    plan: Plan,
    tokens: Tokens,
    n_bytes: int,
) -> TeachingPlan | None:
    """The plan of a timed run that would repeat its text too often to learn more from it alone; None otherwise.

    `plan` is that of a single model.
    """
    long = request.minutes is not None and request.minutes >= LEAST_MINUTES
    may = request.teachers is None and long and request.recipe == "fast"
    alone = request.start is None and not request.is_student and not request.sharded
    epochs = plan.epochs(len(tokens))
    if not (may and alone and isinstance(plan.config, Config) and plan.config.causal):
        return None
    if plan.share < 1 or epochs < LEAST_EPOCHS:
        return None
    assert request.minutes is not None
    many = epochs >= MANY_EPOCHS
    count = None if many and request.minutes >= LEAST_MINUTES_OF_GENERATIONS else FEW
    teaching = plan_teaching(request, saved_request, text_sha256, count)
    if many and request.tokenizer is None and request.vocab is None and n_bytes < MOST_BYTES:
        teaching = replace(teaching, settings=teaching.settings | {"tokenizer": "byte"})
    return teaching
