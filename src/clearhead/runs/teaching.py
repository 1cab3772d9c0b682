"""The teachers of a run that trains its own: how many, for how long, and which learn from which.

Each is an ordinary run inside the run folder; the run itself is their student.

teachers/plan.json   the plan
teachers/1/ …        the teachers, in the order in which they are trained
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import disk_errors, make_folder, read_sealed, seal, write_json
from clearhead.runs.measure import Measure
from clearhead.runs.plan import Plan, largest_size, smaller_size
from clearhead.runs.preparation import prepare_text
from clearhead.runs.recipes import choose_rows
from clearhead.runs.request import TrainingRequest
from clearhead.runs.teacher_folders import PLAN, TEACHERS
from clearhead.runtime.device import can_compile, pick_device
from clearhead.text.corpus import Document, measure
from clearhead.text.tokens import Tokens

FORMAT = 1

# When and how, as measured (docs/experiments.md).
LEAST_MINUTES = 1.5
# That a single model would train: in nine minutes, 20 are too few, and 34 enough; in less than three, 250 are enough.
LEAST_EPOCHS, LEAST_EPOCHS_IF_SHORT, SHORT = 30, 200, 5.0  # minutes
LEAST_EPOCHS_ON_GPU = 60  # of the largest model that suits the text, before it is compiled
LEAST_MINUTES_OF_GENERATIONS = 5.0  # on a GPU
# Teachers of a student; teachers of a student that itself teaches; the number of such students.
FEW, MANY, STUDENTS = 4, 8, 4
TEACHING_SHARE = 0.35  # of the time, for all teachers
SHARES_OF_GENERATIONS = (0.15, 0.45)  # of the time, for the first teachers and for their students
WORTH_COMPILING = 30.0  # seconds of training all teachers
MOST_BYTES = (
    2_000_000  # of a text for which this is tried on a GPU; bytes are then better tokens than those of BPE
)
GPU_BATCH = 16384  # tokens

APART = 1009  # between the seeds of runs, so that each trains different teachers


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
    # How the run was started, as recorded with the teachers and the student.
    resume: bool = False
    command: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.teachers)

    def request_of(self, number: int, request: TrainingRequest) -> TrainingRequest:
        """The request of a teacher."""
        seed = (APART * request.seed + number) % 2**32
        minutes = self.teachers[number - 1].minutes
        return replace(request, **self.settings, minutes=minutes, seed=seed, teachers=0, keep_teachers=True)

    def up_to(self, last: int) -> TeachingPlan:
        """The plan without the teachers after this one."""
        numbers = [number for number in self.taught_by if number <= last] or list(range(1, last + 1))
        return replace(self, teachers=self.teachers[:last], taught_by=numbers)

    def save(self, folder: Path) -> None:
        with disk_errors(folder, "the run was not started"):
            make_folder(folder / TEACHERS)
        write_json(folder / TEACHERS / PLAN, seal({"format": FORMAT, "count": self.count, **asdict(self)}))

    @classmethod
    def read(cls, folder: Path) -> TeachingPlan | None:
        """The plan of an earlier process, if there is one."""
        path = folder / TEACHERS / PLAN
        if not has_teachers(folder):
            return None
        saved = read_sealed(path)
        try:
            if saved.pop("format") != FORMAT:
                raise ValueError("its format is unknown")
            del saved["count"]
            return cls(**saved | {"teachers": [TeacherPlan(**each) for each in saved["teachers"]]})
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is damaged ({error}): start in another folder") from None


def has_teachers(folder: Path) -> bool:
    """Whether teachers were planned for the run in this folder, even if that run has not started yet."""
    return os.path.exists(folder / TEACHERS / PLAN)  # noqa: PTH110 (Path.exists raises for a name that is too long)


def missing_parents(folder: Path) -> list[Path]:
    """The folders above this one that do not exist, innermost first."""
    return [each for each in folder.parents if not os.path.exists(each)]  # noqa: PTH110 (as above)


def discard_unstarted(folder: Path, made: Sequence[Path]) -> None:
    """Delete the plan if the first teacher has not started, and the folders made for it, including those above."""
    first = teacher_folder(folder, 1)
    with suppress(OSError):  # a folder that is not empty: then the first teacher has started
        if first.exists():
            first.rmdir()
        (folder / TEACHERS / PLAN).unlink()
        for each in (folder / TEACHERS, folder, *made):
            each.rmdir()


def teacher_folder(folder: Path, number: int) -> Path:
    return folder / TEACHERS / str(number)


def teachers_of(folder: Path, request: TrainingRequest, extends: bool = False) -> list[str] | None:
    """The student's teachers, if the run in the folder trains its own."""
    if not request.teachers:
        return None
    plan = TeachingPlan.read(folder)
    numbers = [] if plan is None else plan.taught_by
    folders = [teacher_folder(folder, number) for number in numbers]
    missing = [each.name for each in folders if not each.is_dir()]
    if missing or not folders:
        then = (
            "extended without them: to train its model further, fine-tune it in another folder, with `start`"
            if extends
            else "resumed without them: start it again in another folder, with `out`"
        )
        which = "the teachers" if len(missing) == len(folders) else f"the teachers {', '.join(missing)}"
        raise UserError(f"{which} in {folder / TEACHERS} were deleted, but the run cannot be {then}")
    return [str(each) for each in folders]


def plan_teaching(
    request: TrainingRequest, saved_request: dict[str, Any], text_sha256: str, count: int | None = None
) -> TeachingPlan:
    """The plan for a number of teachers; without one, for two generations of them."""
    minutes, settings = request.minutes, {}
    compiles = minutes is not None and 60 * minutes * TEACHING_SHARE >= WORTH_COMPILING
    if compiles and request.compiled is None and can_compile(pick_device(request.device)):
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
) -> TeachingPlan | None:
    """The plan of a timed run that would repeat its text too often to learn more from it alone; None otherwise.

    `plan` is that of a single model.
    """
    if not _may_have_teachers(request) or plan.share < 1:
        return None
    assert request.minutes is not None
    if plan.epochs(len(tokens)) < (LEAST_EPOCHS_IF_SHORT if request.minutes < SHORT else LEAST_EPOCHS):
        return None
    teaching = plan_teaching(request, saved_request, text_sha256, FEW)
    assert plan.seconds is not None
    share = TEACHING_SHARE / FEW
    size = smaller_size(request, plan, tokens, share * plan.seconds)
    shape = {"blocks": size.n_block, "heads": size.n_head, "width": size.d_model, "context": plan.context}
    return replace(teaching, settings=teaching.settings | shape)


def choose_on_gpu(
    request: TrainingRequest, saved_request: dict[str, Any], texts: Sequence[Document], cache: Path
) -> TeachingPlan | None:
    """The same on a GPU, before anything else is measured: whether the largest model that suits the text would
    train for many epochs. Its size is that of the teachers.
    """
    device = pick_device(request.device)
    if device.type != "cuda" or not _may_have_teachers(request):
        return None
    assert request.minutes is not None
    sha256, n_bytes = measure(texts)
    if n_bytes > MOST_BYTES:
        return None
    chosen: dict[str, Any] = {}
    if request.tokenizer is None and request.vocab is None:
        chosen["tokenizer"] = "byte"
    text = prepare_text(texts, replace(request, **chosen), cache)
    config = largest_size(request, text.tokens, text.tokenizer.n_vocab, device)
    rows = request.batch or choose_rows(config, GPU_BATCH)
    seconds = 60 * request.minutes
    speed = Measure.take(replace(request, batch=rows), config, text.tokens, device, seconds)
    epochs = seconds / speed.seconds_per_token / len(text.tokens)
    if text.share < 1 or epochs < LEAST_EPOCHS_ON_GPU:
        return None
    count = None if request.minutes >= LEAST_MINUTES_OF_GENERATIONS else FEW
    teaching = plan_teaching(request, saved_request, sha256, count)
    shape = {"blocks": config.n_block, "heads": config.n_head, "width": config.d_model}
    chosen |= shape | {"context": config.n_context, "batch": rows}
    return replace(teaching, settings=teaching.settings | chosen)


def _may_have_teachers(request: TrainingRequest) -> bool:
    """Whether the plan may choose teachers."""
    long = request.minutes is not None and request.minutes >= LEAST_MINUTES
    plain = request.start is None and not request.sharded and not request.bidirectional
    alone = request.teachers is None and request.from_teachers is None
    return long and plain and alone and request.kind == "transformer" and request.recipe == "fast"
