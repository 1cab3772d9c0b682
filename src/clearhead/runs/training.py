"""Training as one call: text in, model out, saved in a folder if one is given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.folder import check_free, check_room
from clearhead.formats.opening import name_of
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs.counting import count_text
from clearhead.runs.kept_run import KeptRun
from clearhead.runs.loss_curve import draw_losses
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run, save_somewhere, with_time
from clearhead.runs.run_folder import BEST, is_run
from clearhead.runtime.device import pick_device
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import documents
from clearhead.training.lora import merge


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

    `resume` continues the run in that folder. `tensorboard`, and `wandb` with a project name, log every
    step.
    Other settings are the fields of `TrainingRequest`: minutes or steps, kind of network, preset, blocks,
    heads,
    width, context, tokenizer, … With `start`, fine-tune that model: all its weights or, with `lora`,
    adapters of
    that rank, merged at the end. Notes, such as that the text is short, are issued as warnings.
    """
    reports = Reports(tensorboard, wandb)
    request = TrainingRequest(**settings)
    if request.kind == "ngram":
        if resume or checkpoint_every or snapshots or reports.reporters:
            raise UserError(
                "an n-gram model is counted in one pass: omit resume, checkpoint_every, snapshots, tensorboard "
                "and wandb"
            )
        return _count(sources, out, request)
    request = with_time(request)
    group = ProcessGroup.join(pick_device(request.device))
    given = [sources] if isinstance(sources, str | Path) else sources
    if out is None:
        if reports.reporters:
            raise UserError("reports are saved with the run: give its folder with out=…")
        run = Run(list(documents(given)), request, group=group)
        _warn(run.plan.warnings(len(run.tokens)))
        for _ in run:
            _warn(run.notes)
        _warn(run.hindsight())
        return _merged(run.whole_model())
    folder = Path(out)
    if not is_run(folder) and group.is_main:
        check_free(folder)
    kept = KeptRun.open(
        folder,
        list(documents(given)),
        request,
        resume,
        checkpoint_every=checkpoint_every,
        snapshots=snapshots,
        group=group,
    )
    if kept is None:
        return load(folder, request.device)
    with kept:
        run = kept.run
        check_room(folder, run.plan.config)
        kept.report_to(reports)
        _warn(run.plan.warnings(len(run.tokens)))
        for _ in kept:
            _warn(run.notes)
        model = run.whole_model()
        model.name = name_of(folder)
        if group.is_main:
            saved, refused = save_somewhere(model, folder)
            if refused is not None:
                raise UserError(f"{refused}; the model was saved to {saved}")
            _warn(draw_losses(folder))
            kept.finish()
        group.barrier()
    _warn(run.notes + run.hindsight(folder / BEST))
    return _merged(model)


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


def _warn(words: list[str]) -> None:
    """Issue each warning once, attributed to the caller of `train`."""
    while words:
        warnings.warn(words.pop(0), stacklevel=3)
