"""Training, from text to saved model, shared by the command line and the Python API.

The server runs `clearhead train` in a separate process.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

from clearhead.errors import OwnError, UserError
from clearhead.files import read_json
from clearhead.formats.folder import check_free, check_space
from clearhead.formats.opening import name_of
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs.counting import CountedText, count_text
from clearhead.runs.listing import CALL
from clearhead.runs.loss_curve import draw_losses
from clearhead.runs.observer import Observer
from clearhead.runs.plan import Plan
from clearhead.runs.progress import Progress
from clearhead.runs.progress_line import ProgressLine, find_display
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest, TrainingSettings, with_time
from clearhead.runs.run import Run
from clearhead.runs.run_folder import BEST, is_finished, is_run, make_record
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.teacher_folders import RUN
from clearhead.runs.teaching import TeachingPlan, has_teachers, teacher_folder
from clearhead.runs.teaching_start import open_teaching, request_teaching, teaching_of
from clearhead.runtime.device import pick_device
from clearhead.runtime.process_group import ProcessGroup
from clearhead.summary_table import plural
from clearhead.text.corpus import Document, documents, readable
from clearhead.training.lora import merge

LATEST = 0.6  # of the time, after which no further teacher is started
PACKAGE = str(Path(__file__).parents[1])
Callback = Callable[[dict[str, Any]], object]  # receives the record of each step
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


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
    """A trained n-gram model, and where it is; fields as in `Outcome`."""

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
    student = request
    if is_new:
        request = with_time(request)
        cache = options.get("cache")
        teaching = group.run_on_main(lambda: open_teaching(folder, read, request, resume, cache))
        if teaching is not None:
            taught = _teach(folder, teaching, read, request, observer, group, options)
            if isinstance(taught, Outcome):
                return taught
            student = replace(request, teachers=taught.count)
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
    # The single run, which has taken no step, is gone.
    group.run_on_main(lambda: teaching.save(folder))
    given = {"resume": True, "group": group, "reports": reports, **options}
    return train_network(folder, lambda: read, request, observer, **given)


def _train_unsaved(
    texts: list[Document], request: TrainingRequest, observer: Observer, group: ProcessGroup, began: float
) -> Outcome:
    """Train a run that is not saved; its teachers are, for as long as they are needed."""
    teaching = group.run_on_main(lambda: request_teaching(texts, request))
    if teaching is None:
        run = Run(texts, request, group=group, began=began)
        teaching = teaching_of(run)
    if teaching is not None:
        with tempfile.TemporaryDirectory(prefix="clearhead-") as temporary:
            place = Path(group.broadcast(temporary))
            taught = _teach(place, teaching, texts, request, observer, group, {"began": began})
            if isinstance(taught, Outcome):
                return replace(taught, folder=None)
            request = replace(request, teachers=taught.count)
            names = [str(teacher_folder(place, number)) for number in taught.taught_by]
            run = Run(texts, request, group=group, began=began, teachers=names)
            group.barrier()  # before the folder is deleted
    observer.started(run, Reports())
    return _train_and_save(run, None, observer)


def _teach(
    folder: Path,
    teaching: TeachingPlan,
    texts: list[Document],
    request: TrainingRequest,
    observer: Observer,
    group: ProcessGroup,
    options: dict[str, Any],
) -> TeachingPlan | Outcome:
    """Train the teachers that are not finished yet; return the outcome of one if it was stopped.

    In a timed run, their time counts toward the total, also that of earlier processes. If they take too long, the
    returned plan has fewer of them.
    """
    kept = {name: options[name] for name in ("cache", "command", "checkpoint_every") if name in options}
    options["began"] -= teaching.seconds or 0.0
    plan: Plan | None = None
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
        if outcome is not None and outcome.error is not None:
            raise outcome.error
        if number == 1:
            plan = Plan.from_json(read_json(place / RUN)["plan"])
        if own.minutes is not None and request.minutes is not None:
            seconds = group.broadcast(time.perf_counter() - options["began"])
            teaching = replace(teaching, seconds=seconds)
            if seconds > LATEST * 60 * request.minutes:
                if number < teaching.count:
                    observer.noted(
                        f"the teachers took longer than planned: no more than {number} of {teaching.count}"
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
    return Outcome(run, model, folder, finished, error, run.summary(best))


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


def _shows_settings(function: FunctionT) -> FunctionT:
    """Show each setting in the signature, with its type and default, in place of `**settings`."""
    own = inspect.signature(function)
    settings = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(TrainingRequest)
        if field.name in TrainingSettings.__annotations__
    ]
    sources, out, *rest = list(own.parameters.values())[:-1]
    shown = own.replace(parameters=[sources, out, *settings, *rest])
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


@_shows_settings
def train(
    sources: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    checkpoint_every: int | None = None,
    snapshots: int = 0,
    tensorboard: bool = False,
    wandb: str | None = None,
    progress: bool = True,
    callbacks: Callback | Sequence[Callback] = (),
    **settings: Unpack[TrainingSettings],
) -> LanguageModel:
    """Train a model on your text: a file, a folder, a glob pattern, or several.

    Train for a number of `minutes` or `steps`; default: 3 minutes. What you leave out is chosen to fit: the size
    (`blocks`, `heads`, `kv_heads`, `width`, `context`), the `tokenizer` (bpe, byte, char or word) and its
    `vocab`, the `batch`, `dropout`, `optimizer` (muon or adamw) and `learning_rate`. `preset` is lecture, gpt2
    or modern; `kind` is transformer, elman, gru, lstm or ngram (of this `order`). `bidirectional` trains a masked
    language model. `validation` is a fraction of the text to hold out, or separate files.

    With `start`, fine-tune that model: all its weights or, with `lora`, adapters of that rank, merged at the end.

    With `out`, save the run in that folder; `resume` continues the run there, and extends a finished one by the
    given `minutes` or `steps`, with the text as it is now. `snapshots` saves this many snapshots of the model,
    and `checkpoint_every` is the number of steps between checkpoints. `tensorboard`, and `wandb` with a project
    name, log every step.

    A terminal or a notebook shows a progress line, unless `progress` is false. `callbacks` is a function, or
    several, called after each step with its record, a dict as in metrics.jsonl: step, loss, gradient_norm,
    learning_rate, tokens, and at some steps validation and sample. If one raises an exception, the run stops and
    is saved as far as it got, and `train` raises the exception. Notes (for example, that the text is short) are
    issued as warnings.
    """
    if not isinstance(sources, str | Path | Sequence):
        raise UserError(
            f"sources = {sources!r}: expected a file, a folder, a glob pattern, or a list of them"
        )
    request = TrainingRequest.of(settings)
    given = [sources] if isinstance(sources, str | Path) else sources
    folder = None if out is None else Path(out)
    called = _list_callbacks(callbacks, request)
    group = ProcessGroup.join(pick_device(request.device))
    options: dict[str, Any] = {
        "resume": resume,
        "extend": resume and not group.restarted,
        "group": group,
        "reports": Reports(tensorboard, wandb),
        "checkpoint_every": checkpoint_every,
        "snapshots": snapshots,
    }
    display = find_display() if progress and group.is_main else None
    observer = _CallObserver(None if display is None else ProgressLine(display), called)
    learn = train_ngram if request.kind == "ngram" else train_network
    if folder is not None and learn is train_network:
        options["command"] = [CALL, *map(str, given)]
    outcome = learn(folder, lambda: list(documents(given)), request, observer, **options)
    if outcome is None:
        assert folder is not None
        return load(folder, request.device)
    if isinstance(outcome, Outcome):
        group.barrier()
        observer.raise_failure(outcome)
    if outcome.error is not None:
        raise UserError(f"{outcome.error}; the model was saved to {outcome.folder}")
    if isinstance(outcome, CountingOutcome):
        return outcome.counted.model
    _warn(outcome.run.notes + outcome.summary)
    return _merged(outcome.model)


def _list_callbacks(given: Callback | Sequence[Callback], request: TrainingRequest) -> list[Callback]:
    callbacks = [given] if callable(given) else given
    if not isinstance(callbacks, Sequence) or not all(callable(each) for each in callbacks):
        raise UserError(f"callbacks = {given!r}: expected a function that takes a dict, or a list of them")
    if callbacks and request.kind == "ngram":
        raise UserError("an n-gram model is trained without steps: omit `callbacks`")
    return list(callbacks)


class _CallObserver(Observer):
    """The observer of a call to `train`: shows progress, calls the callbacks, and issues notes as warnings."""

    def __init__(self, line: ProgressLine | None, callbacks: Sequence[Callback]) -> None:
        self.line, self.callbacks = line, callbacks
        self.failure: BaseException | None = None  # raised by a callback

    def noted(self, message: str) -> None:
        _warn([message])

    def entered(self, phase: str) -> None:
        if self.line is not None:
            self.line.phase = phase

    def started(self, run: Run, reports: Reports) -> None:  # noqa: ARG002
        if run.n_teachers and not run.is_teacher:
            self.entered(f"student of {plural(run.n_teachers, 'teacher')}")
        _warn(run.plan.warnings(len(run.tokens), run.request.start is not None) + run.notes)
        run.notes.clear()

    @contextmanager
    def training(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.saving()

    def stepped(self, run: Run, progress: Progress) -> bool:
        if self.line is not None and run.notes:
            self.line.clear()
        _warn(run.notes)
        if self.line is not None:
            self.line.step(progress, run.request.minutes)
        if run.group.is_main:
            self._call(progress)
        return not run.group.any(self.failure is not None)

    def _call(self, progress: Progress) -> None:
        try:
            for callback in self.callbacks:
                callback(make_record(progress))
        except BaseException as error:  # also an interrupt, after which the run is saved too
            self.failure = error

    def saving(self) -> None:
        if self.line is not None:
            self.line.close()

    def raise_failure(self, outcome: Outcome) -> None:
        """Raise the exception of a callback, on all ranks."""
        if outcome.finished:
            return
        if self.failure is None:
            raise OwnError("a callback on rank 0 raised an exception: the run was stopped")
        where = "" if outcome.folder is None else f"; the model so far is saved in {outcome.folder}"
        self.failure.add_note(f"training stopped after step {outcome.run.trainer.step}{where}")
        raise self.failure


def _merged(model: LanguageModel) -> LanguageModel:
    if isinstance(model.network, Transformer):
        merge(model.network)
    return model


def _warn(messages: list[str]) -> None:
    """Issue each message once as a warning, attributed to the first caller outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    while messages:
        warnings.warn(messages.pop(0), stacklevel=level)
