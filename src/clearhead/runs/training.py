"""Training, from text to saved model, shared by the command line and the Python API.

The server runs `clearhead train` in a separate process.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.folder import check_free, check_space
from clearhead.formats.opening import name_of
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs.counting import CountedText, count_text
from clearhead.runs.loss_curve import draw_losses
from clearhead.runs.observer import Observer
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Progress, Run, save_somewhere, with_time
from clearhead.runs.run_folder import BEST, is_run
from clearhead.runs.saved_run import SavedRun
from clearhead.runtime.device import pick_device
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import Document, documents, without_empty
from clearhead.text.sources import show
from clearhead.training.lora import merge

PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run: Run
    model: LanguageModel  # complete on rank 0; if sharded, other ranks hold only their shard
    folder: Path | None  # where the model was saved, if anywhere
    finished: bool  # false if stopped early
    error: UserError | None  # why the model was not saved in the run folder, but in a temporary one
    summary: list[str]  # warnings about the run as a whole


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

    Without a folder, train a new run and save nothing.
    """
    group = group or ProcessGroup()
    reports = reports or Reports()
    if folder is None:
        if resume or reports.reporters or any(options.values()):
            raise UserError(
                "checkpoints, snapshots and reports are saved with the run: give its folder with out=…"
            )
        run = Run(_read(texts, observer), with_time(request), group=group)
        observer.started(run, reports)
        return _train_and_save(run, None, observer)
    if not is_run(folder) and group.is_main:
        check_free(folder)
    read = _read(texts, observer)
    saved_run = SavedRun.open(folder, read, with_time(request), resume, group=group, **options)
    if saved_run is None:
        return None
    with saved_run:
        check_space(folder, saved_run.run.plan.config)
        saved_run.report_to(reports)
        observer.started(saved_run.run, saved_run.reports)
        return _train_and_save(saved_run.run, saved_run, observer)


def _read(texts: Callable[[], list[Document]], observer: Observer) -> list[Document]:
    """The texts without empty files, which are reported."""
    kept, empty = without_empty(texts())
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        observer.noted(f"skipped {show(empty[0])}{more}: empty")
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
                if finished and error is None:
                    saved_run.finish()
    return Outcome(run, model, folder, finished, error, run.summary(best))


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


def train(
    sources: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    checkpoint_every: int | None = None,
    snapshots: int = 0,
    tensorboard: bool = False,
    wandb: str | None = None,
    **settings: Any,
) -> LanguageModel:
    """Train a model on your text: a file, a folder, a glob pattern, or several.

    With `out`, save the run in that folder; `resume` continues the run there. `tensorboard`, and `wandb` with a
    project name, log every step. Other settings are the fields of `TrainingRequest`: minutes or steps, kind of
    network, preset, blocks, heads, width, context, tokenizer, … With `start`, fine-tune that model: all its weights
    or, with `lora`, adapters of that rank, merged at the end. Notes (for example, that the text is short) are issued
    as warnings.
    """
    if not isinstance(sources, str | Path | Sequence):
        raise UserError(
            f"sources = {sources!r}: expected a file, a folder, a glob pattern, or a list of them"
        )
    request = TrainingRequest.of(settings)
    given = [sources] if isinstance(sources, str | Path) else sources
    folder = None if out is None else Path(out)
    group = ProcessGroup.join(pick_device(request.device))
    options: dict[str, Any] = {
        "resume": resume,
        "group": group,
        "reports": Reports(tensorboard, wandb),
        "checkpoint_every": checkpoint_every,
        "snapshots": snapshots,
    }
    learn = train_ngram if request.kind == "ngram" else train_network
    outcome = learn(folder, lambda: list(documents(given)), request, _Warner(), **options)
    if outcome is None:
        assert folder is not None
        return load(folder, request.device)
    if outcome.error is not None:
        raise UserError(f"{outcome.error}; the model was saved to {outcome.folder}")
    if isinstance(outcome, CountingOutcome):
        return outcome.counted.model
    group.barrier()
    _warn(outcome.run.notes + outcome.summary)
    return _merged(outcome.model)


class _Warner(Observer):
    """Issues the notes of a run as warnings."""

    def noted(self, message: str) -> None:
        _warn([message])

    def started(self, run: Run, reports: Reports) -> None:  # noqa: ARG002
        _warn(run.plan.warnings(len(run.tokens)))

    def stepped(self, run: Run, progress: Progress) -> bool:  # noqa: ARG002
        _warn(run.notes)
        return True


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
