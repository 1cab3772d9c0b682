"""Training as one call: text in, model out, kept in a folder if one is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.folder import check_free, check_room
from clearhead.language_model import LanguageModel, load
from clearhead.model.machine import pick_device
from clearhead.runs.request import Request
from clearhead.runs.run import Run, save_somewhere, with_time
from clearhead.runs.run_folder import KeptRun, is_run
from clearhead.text.corpus import documents
from clearhead.training.lora import merge
from clearhead.training.workers import Workers


def train(
    sources: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    checkpoint_every: int | None = None,
    snapshots: int = 0,
    **settings: Any,
) -> LanguageModel:
    """Train a model on your text: a file, a folder, a pattern, or several. With `out`, keep the run there.

    `resume` goes on with the run that is there. Other settings are those of `Request`: minutes or steps,
    preset, blocks, heads, width, context, tokenizer, … With `start`, training goes on from that model, with
    all its weights or, with `lora`, in adapters of that rank, which are merged into it in the end.
    """
    request = with_time(Request(**settings))
    workers = Workers.join(pick_device(request.device))
    given = [sources] if isinstance(sources, str | Path) else sources
    if out is None:
        run = Run(list(documents(given)), request, workers=workers)
        for _ in run:
            pass
        return _merged(run.whole_model())
    folder = Path(out)
    if not is_run(folder) and workers.first:
        check_free(folder)
    kept = KeptRun.open(
        folder,
        list(documents(given)),
        request,
        resume,
        checkpoint_every=checkpoint_every,
        snapshots=snapshots,
        workers=workers,
    )
    if kept is None:
        return load(folder, request.device)
    with kept:
        check_room(folder, kept.run.plan.config)
        for _ in kept:
            pass
        model = kept.run.whole_model()
        if workers.first:
            saved, refused = save_somewhere(model, folder)
            if refused is not None:
                raise UserError(f"{refused}; the model was saved to {saved}")
            kept.finish()
        workers.wait()
    return _merged(model)


def _merged(model: LanguageModel) -> LanguageModel:
    merge(model.network)
    return model
