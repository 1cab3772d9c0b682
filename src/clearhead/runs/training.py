"""Training, from text to saved model, shared by the command line and the Python API.

The server runs `clearhead train` in a separate process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import read_sealed
from clearhead.formats.folder import check_free, check_space
from clearhead.formats.opening import name_of
from clearhead.language_model import LanguageModel
from clearhead.runs.counting import CountedText, count_text
from clearhead.runs.loss_curve import draw_losses
from clearhead.runs.observer import Observer
from clearhead.runs.plan import Plan
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest, with_time
from clearhead.runs.run import Run
from clearhead.runs.run_folder import BEST, is_finished, is_run
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.summary import summarize
from clearhead.runs.teacher_folders import RUN
from clearhead.runs.teaching import (
    TeachingPlan,
    discard_unstarted,
    has_teachers,
    missing_parents,
    teacher_folder,
)
from clearhead.runs.teaching_start import (
    open_teaching,
    plan_first_teacher,
    request_teaching,
    teaching_of,
)
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import Document, readable

LATEST = 0.7  # of the time, after which no further teacher is started


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run: Run
    model: LanguageModel  # complete on rank 0; if sharded, other ranks hold only their shard
    folder: Path | None  # where the model was saved, if anywhere
    finished: bool  # false if stopped early
    error: UserError | None  # why the model was not saved in the run folder, but in a temporary one
    summary: list[str]  # warnings about the run as a whole
    phase: str | None = None  # which teacher was stopped, if one was


@dataclass(frozen=True)
class CountingOutcome:
    """A trained n-gram model, and where it is saved; fields as in `Outcome`."""

    counted: CountedText
    folder: Path | None
    error: UserError | None


def train_network(
    folder: Path | None,
    texts: Callable[[], list[Document]],
    request: TrainingRequest,
    observer: Observer,
    *,
    resume: bool = False,
    group: ProcessGroup | None = None,
    reports: Reports | None = None,
    **options: Any,
) -> Outcome | None:
    """Start or resume the run in a folder, train and save it. Return None if it is already finished.

    With the option `extend`, a finished run is extended by the requested minutes or steps, if there are any. Without a
    folder, train a new run and save nothing.
    """
    group = group or ProcessGroup()
    reports = reports or Reports()
    options["began"] = options.get("began") or time.perf_counter()
    if folder is None:
        if resume or reports.reporters or any(value for name, value in options.items() if name != "began"):
            raise UserError(
                "checkpoints, snapshots and reports are saved with the run: give its folder with out=…"
            )
        return _train_unsaved(_read(texts, observer), with_time(request), observer, group, options["began"])
    is_new = not is_run(folder)
    if is_new and group.is_main and not has_teachers(folder):
        check_free(folder)
    read = _read(texts, observer)
    student, (chosen, first_plan) = request, options.pop("chosen", (None, None))
    if is_new:
        request = with_time(request)
        given = {"cache": options.get("cache"), "command": options.get("command", ()), "chosen": chosen}
        made = missing_parents(folder)
        teaching = group.run_on_main(lambda: open_teaching(folder, read, request, resume, **given))
        if teaching is not None:
            # All phases record how the run was started, even if it was resumed before they began.
            resume, options["command"] = teaching.resume, teaching.command
            try:
                taught = _teach(folder, teaching, read, request, observer, group, options, first_plan)
            except BaseException:
                if group.is_main:
                    discard_unstarted(folder, made)
                raise
            if isinstance(taught, Outcome):
                return taught
            student = _student(request, taught)
    saved_run = SavedRun.open(folder, read, student, resume, group=group, **options)
    if saved_run is None:
        return None
    with saved_run:
        teaching = teaching_of(saved_run.run) if is_new else None
        if teaching is None:
            check_space(folder, saved_run.run.plan.config)
            saved_run.report_to(reports)
            observer.started(saved_run.run, saved_run.reports)
            return _train_and_save(saved_run.run, saved_run, observer)
    # The single run, which has taken no step, is discarded; the plan of the first teacher is made from its plan.
    chosen = (teaching, plan_first_teacher(teaching, saved_run.run))
    given = {"resume": resume, "group": group, "reports": reports, **options, "chosen": chosen}
    return train_network(folder, lambda: read, request, observer, **given)


def _train_unsaved(
    texts: list[Document], request: TrainingRequest, observer: Observer, group: ProcessGroup, began: float
) -> Outcome:
    """Train a run that is not saved; its teachers are, for as long as they are needed."""
    teaching, first_plan = group.run_on_main(lambda: request_teaching(texts, request)), None
    if teaching is None:
        run = Run(texts, request, group=group, began=began)
        teaching = teaching_of(run)
        first_plan = None if teaching is None else plan_first_teacher(teaching, run)
    if teaching is not None:
        with tempfile.TemporaryDirectory(prefix="clearhead-") as temporary:
            place = Path(group.broadcast(temporary))
            taught = _teach(place, teaching, texts, request, observer, group, {"began": began}, first_plan)
            if isinstance(taught, Outcome):
                return replace(taught, folder=None)
            request = _student(request, taught)
            names = [str(teacher_folder(place, number)) for number in taught.taught_by]
            run = Run(texts, request, group=group, began=began, teachers=names)
            group.barrier()  # before the folder is deleted
    observer.started(run, Reports())
    return _train_and_save(run, None, observer)


def _student(request: TrainingRequest, taught: TeachingPlan) -> TrainingRequest:
    """The request of the student: as given, with the number of teachers if the plan chose them."""
    return replace(request, teachers=request.teachers or taught.count)


def _teach(
    folder: Path,
    teaching: TeachingPlan,
    texts: list[Document],
    request: TrainingRequest,
    observer: Observer,
    group: ProcessGroup,
    options: dict[str, Any],
    first_plan: Plan | None,
) -> TeachingPlan | Outcome:
    """Train the teachers that are not finished yet; return the outcome of one if it was stopped.

    Teachers that learn from the text alone share the plan of the first one: `first_plan` or, without it, a plan made
    by measuring. In a timed run, their time counts toward the total, including that in earlier processes. If they
    take too long, the returned plan has fewer of them.
    """
    kept = {name: options[name] for name in ("cache", "command", "checkpoint_every") if name in options}
    options["began"] -= teaching.seconds or 0.0
    plan = first_plan
    for number in range(1, teaching.count + 1):
        taught_by = teaching.teachers[number - 1].taught_by
        own, place = teaching.request_of(number, request), teacher_folder(folder, number)
        if taught_by:
            own = replace(own, tokenizer=None, vocab=None)
            own = replace(own, from_teachers=[str(teacher_folder(folder, each)) for each in taught_by])
        phase = f"teacher {number} of {teaching.count}"
        if not is_finished(place):
            observer.entered(phase)
        like = (
            None if plan is None or taught_by else replace(plan, recipe=replace(plan.recipe, seed=own.seed))
        )
        outcome = train_network(
            place, lambda: texts, own, observer, resume=True, group=group, plan=like, is_teacher=True, **kept
        )
        if outcome is not None and not outcome.finished:
            return replace(outcome, phase=phase)
        if outcome is not None:
            options["began"] -= outcome.run.resumed_at
        if outcome is not None and outcome.error is not None:
            raise outcome.error
        if number == 1:
            plan = Plan.from_json(read_sealed(place / RUN)["plan"])
        if own.minutes is not None and request.minutes is not None:
            seconds = group.broadcast(time.perf_counter() - options["began"])
            teaching = replace(teaching, seconds=seconds)
            if seconds > LATEST * 60 * request.minutes:
                if number < teaching.count:
                    observer.noted(
                        f"the teachers took longer than planned, so only {number} of {teaching.count} will teach"
                    )
                teaching = teaching.up_to(number)
            if group.is_main:
                teaching.save(folder)
        if number == teaching.count:
            break
    return teaching


def _read(texts: Callable[[], list[Document]], observer: Observer) -> list[Document]:
    """The texts without empty and unreadable files, which are reported."""
    kept, messages = readable(texts())
    for message in messages:
        observer.noted(message)
    return kept


def _train_and_save(run: Run, saved_run: SavedRun | None, observer: Observer) -> Outcome:
    finished, error, folder, best = True, None, None, None
    with observer.training():
        for progress in run if saved_run is None else saved_run:
            if not observer.stepped(run, progress):
                run.finish()
                finished = False
                break
        observer.saving()
        if saved_run is not None and not finished:
            saved_run.save()
        model = run.full_model()
        if saved_run is not None:
            folder = saved_run.folder.path
            best = folder / BEST
            model.name = name_of(folder)
            if run.group.is_main:
                folder, error = save_somewhere(model, folder)
                if error is None:
                    run.notes += draw_losses(folder)
            if finished and run.group.broadcast(error is None):
                saved_run.finish()
    return Outcome(run, model, folder, finished, error, summarize(run, best))


def save_somewhere(model: LanguageModel, folder: Path) -> tuple[Path, UserError | None]:
    """Save the model, to a temporary folder if that fails; return the folder used, and the error if there was one."""
    try:
        model.save(folder, overwrite=True)
    except UserError as error:
        kept = Path(tempfile.mkdtemp(prefix="clearhead-"))
        model.save(kept)
        return kept, error
    return folder, None


def train_ngram(
    folder: Path | None,
    texts: Callable[[], list[Document]],
    request: TrainingRequest,
    observer: Observer,
    *,
    resume: bool = False,
    group: ProcessGroup | None = None,
    reports: Reports | None = None,
    checkpoint_every: int | None = None,
    snapshots: int = 0,
    extend: bool = False,  # noqa: ARG001
    extend_again: bool = False,  # noqa: ARG001
) -> CountingOutcome:
    """Train an n-gram model by counting, without training steps, and save it if there is a folder."""
    parallel = group is not None and group.world_size > 1
    if resume or checkpoint_every or snapshots or parallel or (reports is not None and reports.reporters):
        raise UserError(
            "an n-gram model is trained by counting, in one pass and one process: omit `resume`, "
            "`checkpoint_every`, `snapshots`, `tensorboard`, `wandb` and torchrun"
        )
    if folder is not None:
        check_free(folder)
    counted = count_text(_read(texts, observer), request, on_text=observer.counting)
    observer.counted(counted)
    if folder is None:
        return CountingOutcome(counted, None, None)
    counted.model.name = name_of(folder)
    return CountingOutcome(counted, *save_somewhere(counted.model, folder))
