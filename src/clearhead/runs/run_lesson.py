"""The lesson of a step of a saved run: its batch, its weights and its optimizer state, computed again.

The batch is a function of the seed and the step. The state before the step is computed from
a checkpoint, or from the start of the run, by repeating the steps in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.formats.opening import find_snapshot, hash_weights, list_snapshots, name_of, open_model
from clearhead.lessons.lesson import Lesson
from clearhead.networks import need_transformer
from clearhead.runs.checkpoint import checkpoint_at, list_steps, read_checkpoint
from clearhead.runs.plan import Plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_folder import CHECKPOINTS, RunFolder
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.teaching import teachers_of
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import Document, documents, measure, readable
from clearhead.training.recipe import Recipe

TEXT_MISSING = "run_text_missing"
REPEATED = 200  # steps that are repeated unless more are allowed


def lesson_of_run(
    folder: Path,
    step: int,
    sources: Sequence[str | Path],
    repeat: int = REPEATED,
    device: str | None = None,
) -> Lesson:
    """The lesson of a step, counted from 1 as in the metrics; `sources` are the files of the run's text."""
    own = RunFolder(folder, held=False)
    settings, records = own.settings(), {record["step"]: record for record in read_metrics(folder)}
    if settings is None:
        raise UserError(f"{folder} does not contain a run")
    plan = Plan.from_json(settings["plan"])
    need_transformer(plan.config, "a lesson")
    texts = _read_texts(folder, settings, sources)
    if type(step) is not int or step not in records:
        raise UserError(
            f"step = {step!r}: expected a step of the run in {folder}, 1 to {max(records, default=0)}"
        )
    if type(repeat) is not int or repeat < 0:
        raise UserError(f"repeat = {repeat!r}: expected an integer of at least 0")
    if settings["request"]["sharded"]:
        raise UserError(
            f"the run in {folder} was sharded across processes: its steps cannot be repeated here"
        )
    _check_processes(folder, settings, plan)
    has_snapshots = settings["request"]["lora"] is None  # with adapters, snapshots are of the merged weights
    start = _find_start(folder, step, max(records), plan.recipe.first_step, repeat, has_snapshots)
    run = _rebuild(own, settings, plan, texts, device)
    trainer = run.trainer
    trainer.training_step.graph = None
    trainer.lr_scales = _adjusted_scales(plan.recipe, records)
    if start is None:  # a snapshot has no optimizer state
        saved = open_model(find_snapshot(folder, step - 1))
        trainer.network.load_state_dict(saved.network.state_dict())
        trainer.step = step - 1
        return Lesson(trainer, run.tokenizer, name_of(folder), is_exact=False)
    path = checkpoint_at(folder / CHECKPOINTS, start)
    if start and path is not None:
        run.restore(read_checkpoint(path))
    with torch.random.fork_rng([trainer.device] if trainer.device.type == "cuda" else []):
        while trainer.step < step - 1:
            trainer.network.train()
            trainer.take_step()
    return Lesson(trainer, run.tokenizer, name_of(folder))


def _check_processes(folder: Path, settings: dict[str, Any], plan: Plan) -> None:
    count = max(settings.get("processes", [1]))
    random = [
        name
        for name, size in (("dropout", plan.config.dropout), ("token noise", plan.recipe.token_noise))
        if size
    ]
    if count > 1 and random:
        raise UserError(
            f"the run in {folder} was trained by {count} processes with {' and '.join(random)}, each with its "
            "own random numbers: the run's steps cannot be repeated in one process; train in one process, or without "
            f"{' and '.join(random)}"
        )


def _find_start(
    folder: Path, step: int, last: int, first: int, repeat: int, has_snapshots: bool
) -> int | None:
    """The number of steps done in the state to start from; None for a snapshot of the state before the step."""
    checkpoints = [done for done in list_steps(folder / CHECKPOINTS) if first <= done < step]
    whole = [done for done in checkpoints if checkpoint_at(folder / CHECKPOINTS, done) is not None]
    known = [*([0] if first == 0 else []), *whole]
    if known and step - 1 - max(known) <= repeat:
        return max(known)
    if has_snapshots and step - 1 in list_snapshots(folder):
        return None
    if not known:
        raise UserError(
            f"step {step}: the run was extended at step {first}, and no state from before this step was kept; choose a "
            "step for which there is a checkpoint or a snapshot"
        )
    between = step - 1 - max(known)
    after = [done + 1 for done in list_snapshots(folder) if has_snapshots and done < last]
    steps = ", ".join(map(str, after))
    raise UserError(
        f"step {step}: the nearest state that was kept is that of step {max(known)}; pass repeat={between} to "
        f"repeat the {between:,} steps in between"
        + (f", or choose a step after a snapshot: {steps}" if steps else "")
    )


def _adjusted_scales(recipe: Recipe, records: dict[int, dict[str, Any]]) -> dict[int, float]:
    """The learning-rate multipliers that differ from the final schedule, by the number of steps done before.

    A timed run adjusts its number of steps; a run that diverged lowers its learning rate.
    """
    rates = {number - 1: record.get("learning_rate") for number, record in records.items()}
    return {
        done: rate / recipe.main_rate
        for done, rate in rates.items()
        if rate is not None and rate != recipe.main_rate * recipe.lr_scale(done)
    }


def _read_texts(folder: Path, settings: dict[str, Any], sources: Sequence[str | Path]) -> list[Document]:
    """The texts that the run was trained on."""
    given = ", ".join(map(str, sources)) or "unknown"
    texts: list[Document] = []
    try:
        if sources:
            texts, _ = readable(list(documents(sources)))
        if texts and measure(texts)[0] == settings["text_sha256"]:
            return texts
        problem = "has changed or is not known"
    except UserError as error:
        problem = f"cannot be read: {error}"
    raise UserError(
        f"the text of the run in {folder} ({given}) {problem}; pass the files that it was trained on as text=…",
        TEXT_MISSING,
    )


def _rebuild(
    folder: RunFolder, settings: dict[str, Any], plan: Plan, texts: list[Document], device: str | None
) -> Run:
    """The run as it was started."""
    request = TrainingRequest(**settings["request"], device=device)
    tokenizer, group = folder.tokenizer(), ProcessGroup()
    held_out = folder.find_held_out(tokenizer, group) if settings.get("text_changed") else None
    for name, saved in zip(request.teacher_names, request.teachers_sha256 or (), strict=True):
        if hash_weights(name) != saved:
            raise UserError(f"the teacher {name} has changed since the run in {folder.path} learned from it")
    teachers = teachers_of(folder.path, request)
    given: dict[str, Any] = {"group": group, "held_out": held_out, "teachers": teachers}
    return Run(texts, request, plan=plan, tokenizer=tokenizer, **given)
