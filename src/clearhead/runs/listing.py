"""The runs on this disk: settings and progress, from run.json and the last line of the metrics."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from clearhead.errors import UserError, guess
from clearhead.files import read_sealed
from clearhead.formats.opening import list_snapshots
from clearhead.networks import config_from_json
from clearhead.runs.checkpoint import newest_step
from clearhead.runs.following import Follower
from clearhead.runs.run_folder import CHECKPOINTS
from clearhead.runs.run_metrics import check_metrics, last_record
from clearhead.runs.teacher_folders import RUN, TEACHERS, find_runs, lacks_teachers, teacher_in
from clearhead.summary_table import TableCell, html_table, plural, text_table
from clearhead.training.position_loss import bits_per_byte

if TYPE_CHECKING:
    from clearhead.lessons.lesson import Lesson

CALL = "ch.train"  # the first part of the command of a run that was started from Python; its texts follow
HEADINGS = ("run", "text", "tokenizer", "steps", "bits per byte", "state")
CURVES = ("loss", "smoothed", "validation", "learning_rate", "gradient_norm")
RUNS = "runs"  # where `clearhead train` saves runs
MOST_SHOWN = 20  # runs in a printed list
PARTIAL = "~ measured on a part of the held-out text, for lack of time: do not compare it with other losses"


@dataclass(frozen=True, repr=False)
class ListedRun:
    """A run in its folder, as it was when it was listed."""

    folder: Path
    finished: bool
    running: bool  # whether a process is training in the folder now
    steps_planned: int
    steps_done: int
    tokens: int  # processed so far
    minutes: float | None  # of a timed run, including those it was extended by
    kind: str  # kind of network
    preset: str | None  # of a transformer
    texts: list[str]  # file names of the texts, if the command lists them
    snapshots: list[int]  # steps of the snapshots
    command: list[str]
    text_sha256: str
    tokenizer: str | None  # its kind and size; None in older runs
    parameters: int
    validation_tokens: int
    validation_bytes: int | None  # None if the loss cannot be given in bits per byte
    validated_share: float = 1.0  # of the held-out text; less if there was no time for all of it
    teachers: int = 0  # that it learns from; of a teacher, how many there are
    teacher: int | None = None  # the number of a teacher, from 1
    student: Path | None = None  # the folder of the run that a teacher teaches
    lacks_teachers: bool = False  # those that it trained for itself have been deleted

    def __repr__(self) -> str:
        about = [
            self.text,
            self.tokenizer,
            f"{self.steps_done:,} of {self.steps_planned:,} steps",
            self._loss,
        ]
        shown = ", ".join(each for each in (*about, self._state) if each)
        return f"ListedRun({str(self.folder)!r}: {shown})"

    def _repr_html_(self) -> str:
        lowest = self.best_validation_loss
        best = "" if lowest is None else f"{self._mark(lowest)} nats per token"
        rows = [
            *zip(HEADINGS[1:], self._row()[1:], strict=True),
            ("kind", self.kind),
            ("parameters", self.parameters),
            ("tokens read", self.tokens),
            ("lowest validation loss", best),
        ]
        return html_table((), rows, str(self.folder))

    def lesson(
        self,
        step: int,
        text: str | Path | Sequence[str | Path] | None = None,
        repeat: int | None = None,
        device: str | None = None,
    ) -> Lesson:
        """Compute a training step of this run again, with its batch: `lesson(1)` is the first step.

        The text is read from its files, or from `text`, and must not have changed. The state before the step is that
        of the newest checkpoint before it, or the start of the run; up to `repeat` steps (default: 200) are then
        repeated. Beyond that, a snapshot of the preceding step yields gradients, but no updates.
        """
        from clearhead.runs.run_lesson import REPEATED, lesson_of_run

        given = (
            text_sources(self.command) if text is None else [text] if isinstance(text, str | Path) else text
        )
        return lesson_of_run(self.folder, step, given, REPEATED if repeat is None else repeat, device)

    @property
    def name(self) -> str:
        """The name of its folder; of a teacher, with that of its student."""
        folder = self.folder
        return folder.name if self.student is None else f"{self.student.name}/{TEACHERS}/{folder.name}"

    @property
    def role(self) -> str | None:
        """Which teacher it is, or how many it learns from; None for a run without teachers."""
        if self.teacher is not None:
            return f"teacher {self.teacher} of {self.teachers}"
        return f"student of {plural(self.teachers, 'teacher')}" if self.teachers else None

    @property
    def text(self) -> str | None:
        """The names of its texts; None if unknown."""
        return ", ".join(self.texts) or None

    @cached_property
    def metrics(self) -> dict[str, NDArray[Any]]:
        """Its curves, one value per line of metrics.jsonl: step, tokens, loss, smoothed (the average loss over
        about the last quarter of the steps, at most twenty), validation, learning_rate and gradient_norm.

        Values that were not measured at a step, or not finite, are NaN.
        """
        follower = Follower(self.folder)
        follower.look()
        whole = {name: [getattr(each, name) for each in follower.steps] for name in ("step", "tokens")}
        numbers = {name: [getattr(each, name) for each in follower.steps] for name in CURVES}
        return {
            **{name: np.array(values, dtype=np.int64) for name, values in whole.items()},
            **{name: np.array(values, dtype=np.float64) for name, values in numbers.items()},
        }

    @property
    def validation_loss(self) -> float | None:
        """The newest validation loss, in nats per token; None if none has been measured yet."""
        losses = self._validation_losses
        return float(losses[-1]) if len(losses) else None

    @property
    def best_validation_loss(self) -> float | None:
        """The lowest validation loss, in nats per token."""
        losses = self._validation_losses
        return float(losses.min()) if len(losses) else None

    @property
    def bits_per_byte(self) -> float | None:
        """The newest validation loss in bits per byte, which can be compared across tokenizers."""
        return self._in_bits(self.validation_loss)

    @property
    def best_bits_per_byte(self) -> float | None:
        """The lowest validation loss in bits per byte."""
        return self._in_bits(self.best_validation_loss)

    @property
    def _validation_losses(self) -> NDArray[np.float64]:
        losses = self.metrics["validation"]
        return losses[np.isfinite(losses)]

    def _in_bits(self, loss: float | None) -> float | None:
        if loss is None or not self.validation_bytes:
            return None
        return bits_per_byte(loss * self.validation_tokens, self.validation_bytes)

    @property
    def _loss(self) -> str:
        """The newest validation loss with its unit."""
        if self.bits_per_byte is not None:
            return f"{self._mark(self.bits_per_byte)} bits per byte"
        return "" if self.validation_loss is None else f"{self._mark(self.validation_loss)} nats per token"

    def _mark(self, loss: float) -> str:
        """A loss, marked as approximate if it was measured on only part of the held-out text."""
        return f"{'~' if self.validated_share < 1 else ''}{loss:.4f}"

    @property
    def _state(self) -> str:
        state = "finished" if self.finished else "running" if self.running else "unfinished"
        return state if self.role is None else f"{self.role}, {state}"

    def _row(self) -> list[TableCell]:
        bits = self._loss if self.bits_per_byte is None else self._mark(self.bits_per_byte)
        steps = f"{self.steps_done:,}/{self.steps_planned:,}"
        return [str(self.folder), self.text, self.tokenizer, steps, bits, self._state]


class ListedRuns(list[ListedRun]):
    """Runs by number, or by the name of their folder: `ch.runs()["my"]`, `ch.runs()["my/teachers/1"]`."""

    def __init__(self, place: Path, runs: Iterable[ListedRun]) -> None:
        super().__init__(runs)
        self.place = place

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> ListedRun: ...

    @overload
    def __getitem__(self, key: slice) -> list[ListedRun]: ...

    def __getitem__(self, key: SupportsIndex | str | slice) -> ListedRun | list[ListedRun]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for run in self:
            if key in (run.name, str(run.folder)):
                return run
        raise UserError(f"no run {key!r} in {self.place}{guess(key, [run.name for run in self])}")

    def __repr__(self) -> str:
        return text_table(HEADINGS, self._rows()) + self._more if self else self._none

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self._rows(), self._more) if self else f"<p>{escape(self._none)}</p>"

    def _rows(self) -> list[list[TableCell]]:
        return [run._row() for run in self[:MOST_SHOWN]]

    @property
    def _more(self) -> str:
        more = f"\n… and {len(self) - MOST_SHOWN:,} more" if len(self) > MOST_SHOWN else ""
        partial = any(run.validated_share < 1 for run in self[:MOST_SHOWN])
        return more + (f"\n{PARTIAL}" if partial else "")

    @property
    def _none(self) -> str:
        return f"no runs in {self.place}; start one: ch.train('my.txt', out='runs/my')"


def list_runs(folder: str | Path = RUNS) -> ListedRuns:
    """The runs in a folder, or the folder itself if it is a run, with settings, losses and curves.

    A damaged run is skipped, with a warning.
    """
    place, found = Path(folder), []
    if not place.is_dir() and place != Path(RUNS):
        raise UserError(f"no such folder: {place}; name a run folder, or one that contains runs")
    for each in find_runs([place]):
        try:
            found.append(describe_run(each))
        except (UserError, OSError) as error:
            warnings.warn(f"skipped: {error}", stacklevel=3)
    return ListedRuns(place, found)


def describe_run(folder: Path) -> ListedRun:
    """Describe a run from run.json and the last line of the metrics."""
    settings = read_sealed(folder / RUN)
    check_metrics(folder, settings)
    last = last_record(folder)
    try:
        request, config = settings["request"], config_from_json(settings["plan"]["config"])
        command = [str(argument) for argument in settings["command"]]
        timed = [each["minutes"] for each in (*settings.get("earlier", []), request)]
        minutes = [each for each in timed if each is not None]
        tokenizer, teacher = settings.get("tokenizer"), teacher_in(folder)
        return ListedRun(
            folder,
            finished=bool(settings["finished"]),
            running=is_held(folder),
            steps_planned=planned_steps(settings, int(last.get("step", 0))),
            steps_done=int(last.get("step", 0)),
            tokens=int(last.get("tokens", 0)),
            minutes=float(sum(minutes)) if minutes else None,
            kind=config.kind,
            preset=str(request["preset"]) if config.kind == "transformer" else None,
            texts=list_texts(command),
            snapshots=list_snapshots(folder),
            command=command,
            text_sha256=str(settings["text_sha256"]),
            tokenizer=None if tokenizer is None else f"{tokenizer['kind']} {tokenizer['n_vocab']:,}",
            parameters=config.n_parameter,
            validation_tokens=int(settings["validation_tokens"]),
            validation_bytes=settings.get("validation_bytes"),
            validated_share=_validated_share(settings),
            teachers=_count_teachers(settings) if teacher is None else teacher.count,
            teacher=None if teacher is None else teacher.number,
            student=None if teacher is None else teacher.student,
            lacks_teachers=lacks_teachers(folder, request),
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{folder / RUN} was written by a different version, or is damaged") from None


def _validated_share(settings: dict[str, Any]) -> float:
    """The share of the held-out text that the loss is measured on."""
    return float(
        settings["validation_tokens"] / settings.get("held_out_tokens", settings["validation_tokens"])
    )


def _count_teachers(settings: dict[str, Any]) -> int:
    """The teachers that a run learns from or, if it does not record them, those that it requested."""
    request = settings["request"]
    return int(settings.get("teachers") or request.get("teachers") or len(request.get("from_teachers") or ()))


def planned_steps(settings: dict[str, Any], done: int) -> int:
    """The number of steps of a run; for an unfinished timed run, this is an estimate."""
    if settings["finished"]:
        return done
    return max(done, int(settings["plan"]["recipe"]["steps"]))


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock on the run folder; the lock of a killed process does not count."""
    path = folder / ".lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # the folder is not writable, so nothing trains in it
    lock.release()
    return False


def is_extendable(run: ListedRun) -> bool:
    """Whether `clearhead` can extend the run: it is finished, was not started from Python, and its state was kept.

    A teacher is not extended: its student has learned from it as it is. A student needs its teachers.
    """
    return (
        run.finished
        and run.teacher is None
        and not run.lacks_teachers
        and _is_typed(run.command)
        and newest_step(run.folder / CHECKPOINTS) is not None
    )


def resume_command(command: Sequence[str], folder: Path, minutes: float | None = None) -> list[str] | None:
    """The arguments with which `clearhead` resumes the run; None if it was started from Python.

    They are those of the original command, with --resume and the current folder. With `minutes`, they extend a
    finished run by that time.
    """
    if not _is_typed(command):
        return None
    arguments, given = [argument for argument in command[1:] if argument != "--resume"], False
    if minutes is not None:
        arguments = [*_without(arguments, ("--minutes", "--steps")), "--minutes", f"{minutes:g}"]
    for i, argument in enumerate(arguments):
        if argument in ("--out", "-o") and i + 1 < len(arguments):
            arguments[i + 1], given = str(folder), True
        elif argument.startswith("--out="):
            arguments[i], given = f"--out={folder}", True
    return [*arguments, *([] if given else ["--out", str(folder)]), "--resume"]


def _without(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The arguments without these options and their values."""
    dropped = {i + 1 for i, argument in enumerate(arguments) if argument in options}
    return [
        argument
        for i, argument in enumerate(arguments)
        if i not in dropped and argument.partition("=")[0] not in options
    ]


def list_texts(command: Sequence[str]) -> list[str]:
    """The names of the files of a run's text."""
    return [Path(source).name for source in text_sources(command)]


def text_sources(command: Sequence[str]) -> list[str]:
    """The arguments between `train` and the first option, or the sources of `ch.train`."""
    if list(command[:1]) == [CALL]:
        return list(command[1:])
    if not _is_typed(command):
        return []
    options = [i for i, argument in enumerate(command) if i > 1 and argument.startswith("-")]
    return list(command[2 : min(options, default=len(command))])


def _is_typed(command: Sequence[str]) -> bool:
    """Whether a run was started with `clearhead train`."""
    return list(command[1:2]) == ["train"] and command[0] != CALL
