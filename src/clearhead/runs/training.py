"""Training from text to saved model: one orchestration for the command line and Python.

The server runs `clearhead train` as a process of its own.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.folder import check_free, check_room
from clearhead.formats.opening import name_of
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs.counting import count_text
from clearhead.runs.loss_curve import draw_losses
from clearhead.runs.observer import Observer
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Progress, Run, save_somewhere, with_time
from clearhead.runs.run_folder import BEST, is_run
from clearhead.runs.saved_run import SavedRun
from clearhead.runtime.device import pick_device
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import Document, documents
from clearhead.training.lora import merge

PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run: Run
    model: LanguageModel  # on rank 0; only a part of a sharded one elsewhere
    folder: Path  # where the model was saved
    finished: bool  # false if stopped early
    error: UserError | None  # why the model was not saved in the run folder, but in a temporary one
    summary: list[str]  # warnings about the run as a whole


def train_in_folder(
    folder: Path,
    texts: Callable[[], list[Document]],
    request: TrainingRequest,
    observer: Observer,
    *,
    resume: bool = False,
    group: ProcessGroup | None = None,
    reports: Reports | None = None,
    **options: Any,
) -> Outcome | None:
    """Start or resume the run in a folder, train and save it. None if it is already finished."""
    group = group or ProcessGroup()
    if not is_run(folder) and group.is_main:
        check_free(folder)
    saved_run = SavedRun.open(folder, texts(), with_time(request), resume, group=group, **options)
    if saved_run is None:
        return None
    with saved_run:
        check_room(folder, saved_run.run.plan.config)
        if reports is not None:
            saved_run.report_to(reports)
        observer.started(saved_run)
        return _train_and_save(saved_run, observer)


def _train_and_save(saved_run: SavedRun, observer: Observer) -> Outcome:
    run, folder = saved_run.run, saved_run.folder.path
    finished, error = True, None
    with observer.training():
        for progress in saved_run:
            if not observer.stepped(run, progress):
                run.finish()
                finished = False
                break
        observer.saving()
        if not finished:
            saved_run.save()
        model = run.whole_model()
        model.name = name_of(folder)
        if run.group.is_main:
            folder, error = save_somewhere(model, folder)
            if error is None:
                run.notes += draw_losses(folder)
            if finished and error is None:
                saved_run.finish()
    return Outcome(run, model, folder, finished, error, run.summary(saved_run.folder.path / BEST))


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
    """Train a model on your text: a file, a folder, a glob pattern, or several. With `out`, save the run
    there.

    `resume` continues the run in that folder. `tensorboard`, and `wandb` with a project name, log every step.
    Other settings are the fields of `TrainingRequest`: minutes or steps, kind of network, preset, blocks,
    heads, width, context, tokenizer, … With `start`, fine-tune that model: all its weights or, with `lora`,
    adapters of that rank, merged at the end. Notes, such as that the text is short, are issued as warnings.
    """
    reports = Reports(tensorboard, wandb)
    request = TrainingRequest.of(settings)
    if request.kind == "ngram":
        if resume or checkpoint_every or snapshots or reports.reporters:
            raise UserError(
                "an n-gram model is counted in one pass: omit resume, checkpoint_every, snapshots, tensorboard "
                "and wandb"
            )
        return _count(sources, out, request)
    group = ProcessGroup.join(pick_device(request.device))
    given = [sources] if isinstance(sources, str | Path) else sources
    if out is None:
        if reports.reporters:
            raise UserError("reports are saved with the run: give its folder with out=…")
        run = Run(list(documents(given)), with_time(request), group=group)
        _warn(run.plan.warnings(len(run.tokens)))
        for _ in run:
            _warn(run.notes)
        _warn(run.summary())
        return _merged(run.whole_model())
    outcome = train_in_folder(
        Path(out),
        lambda: list(documents(given)),
        request,
        _Warner(),
        resume=resume,
        group=group,
        reports=reports,
        checkpoint_every=checkpoint_every,
        snapshots=snapshots,
    )
    if outcome is None:
        return load(Path(out), request.device)
    if outcome.error is not None:
        raise UserError(f"{outcome.error}; the model was saved to {outcome.folder}")
    group.barrier()
    _warn(outcome.run.notes + outcome.summary)
    return _merged(outcome.model)


class _Warner(Observer):
    """Issues the notes of a run as warnings."""

    def started(self, saved_run: SavedRun) -> None:
        _warn(saved_run.run.plan.warnings(len(saved_run.run.tokens)))

    def stepped(self, run: Run, progress: Progress) -> bool:  # noqa: ARG002
        _warn(run.notes)
        return True


def _count(
    sources: str | Path | Sequence[str | Path], out: str | Path | None, request: TrainingRequest
) -> LanguageModel:
    if out is not None:
        check_free(Path(out))
    given = [sources] if isinstance(sources, str | Path) else sources
    model = count_text(list(documents(given)), request).model
    if out is not None:
        model.save(out)
        model.name = name_of(out)
    return model


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
