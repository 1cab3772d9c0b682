"""`ch.train`: training from Python, with settings as keyword arguments."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, Unpack

from clearhead.errors import OwnError, UserError
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs.listing import CALL
from clearhead.runs.observer import Observer
from clearhead.runs.progress import Progress
from clearhead.runs.progress_line import ProgressLine, find_display
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest, TrainingSettings
from clearhead.runs.run import Run
from clearhead.runs.run_metrics import make_record
from clearhead.runs.training import CountingOutcome, Outcome, train_network, train_ngram
from clearhead.runtime.device import pick_device
from clearhead.runtime.process_group import ProcessGroup
from clearhead.summary_table import plural
from clearhead.text.corpus import documents
from clearhead.training.lora import merge

PACKAGE = str(Path(__file__).parents[1])
Callback = Callable[[dict[str, Any]], object]  # receives the record of each step
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


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
        if run.teachers is not None and not run.is_teacher:
            self.entered(f"student of {plural(len(run.teachers.networks), 'teacher')}")
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
