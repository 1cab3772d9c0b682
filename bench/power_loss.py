"""Cut the power of training runs, and resume them from what may be left on disk.

Usage: python -m bench.power_loss [--cuts 200] [--seed 0] [--short]. Two runs are recorded by `tools.power_loss`: one
that trains to the end, and one whose loss is not finite for some steps, so that it returns to an earlier state. Each
cut is at a random event of a recording; any part of what was not flushed by then may be missing, torn or out of order.
The run is then resumed to the end. Prints one JSON line: after how many cuts every file except run.json is identical to
the uninterrupted run's (`resumed_equal`), and `lost`, the cuts after which something that had been saved (a checkpoint,
the best model, a snapshot, the finished run) was missing. Nothing may be lost.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from bench.faults import CHECKPOINT_EVERY, TEXT, read_files
from clearhead.errors import UserError
from clearhead.files import write_text
from clearhead.formats.opening import SNAPSHOTS
from clearhead.language_model import LanguageModel, load
from clearhead.runs import run_folder
from clearhead.runs.checkpoint import Checkpoint, newest_checkpoint, save_checkpoint
from clearhead.runs.observer import Observer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run_folder import CHECKPOINTS, is_finished, replace_model
from clearhead.runs.staging import recover
from clearhead.runs.training import train_network
from clearhead.text.corpus import documents
from clearhead.training.trainer import Trainer
from tools.power_loss import FileLog, promises, recording, write_remains

CUTS, SHORT = 200, 12
FINISHED = "finished"
SIZES: dict[str, Any] = {"blocks": 1, "width": 32, "heads": 1, "context": 32, "batch": 4, "dropout": 0.2}
BROKEN = {12, 13, 14}  # steps without a finite loss, in the run that returns to an earlier state


def train(place: Path) -> None:
    """Start or resume the run in the folder `run`, as `clearhead train --resume` does."""
    request = TrainingRequest(steps=30, tokenizer="char", device="cpu", **SIZES)
    outcome = train_network(
        place / "run",
        lambda: list(documents([place.parent / "text.txt"])),
        request,
        Observer(),
        resume=True,
        cache=place / "tokens",
        checkpoint_every=CHECKPOINT_EVERY,
        snapshots=3,
    )
    assert outcome is None or (outcome.finished and outcome.error is None), outcome


@contextmanager
def breaking(steps: set[int]) -> Iterator[None]:
    """Make the loss of these steps non-finite, until the run has returned to an earlier state."""
    real = Trainer._forward_backward

    def forward_backward(self: Trainer, lr_scale: float) -> tuple[float, float]:
        loss, norm = real(self, lr_scale)
        return math.nan if self.step + 1 in steps and self.slowdown == 1 else loss, norm

    with patch.object(Trainer, "_forward_backward", forward_backward):
        yield


@contextmanager
def promising(record: FileLog) -> Iterator[None]:
    """Note in the recording what has been saved, each time a save returns."""

    def save(folder: Path, checkpoint: Checkpoint) -> None:
        save_checkpoint(folder, checkpoint)
        record.promise(f"checkpoint {checkpoint.step}")

    def replace(folder: Path, model: LanguageModel) -> None:
        replace_model(folder, model)
        record.promise(f"model {folder.relative_to(record.root)}")

    with (
        patch.object(run_folder, "save_checkpoint", save),
        patch.object(run_folder, "replace_model", replace),
    ):
        yield


def record_run(place: Path) -> FileLog:
    place.mkdir()
    with recording(place) as record, promising(record):
        train(place)
        record.promise(FINISHED)
    return record


def find_lost(record: FileLog, at: int, place: Path) -> list[str]:
    """What had been saved when the power was cut, and is missing afterward."""
    saved, folder = promises(record, at), place / "run"
    for each in (folder, folder / CHECKPOINTS, folder / SNAPSHOTS):
        recover(each)  # a resumed run does this first
    if FINISHED in saved:
        same = folder.is_dir() and is_finished(folder) and load(folder, "cpu")
        return [] if same else [FINISHED]
    steps = [int(what.split()[1]) for what in saved if what.startswith("checkpoint")]
    later = [int(what.split()[1]) for what in promises(record)[len(saved) :] if what.startswith("checkpoint")]
    lost = []
    if steps:
        newest = newest_checkpoint(folder / CHECKPOINTS)
        step = None if newest is None else int(newest.name.removeprefix("step-"))
        if step not in (steps[-1], *later[:1]) and not (folder.is_dir() and is_finished(folder)):
            lost.append(f"checkpoint {steps[-1]}, found {step}")
    for name in {what.split()[1] for what in saved if what.startswith("model")}:
        try:
            # The best model is deleted once the last one, which is as good, is saved.
            load(folder if name.endswith("best") and not (place / name).exists() else place / name, "cpu")
        except UserError as error:
            lost.append(f"{name}: {error}")
    return lost


def cut(record: FileLog, expected: dict[str, bytes], at: int, rng: random.Random, place: Path) -> str | None:
    """Cut the power at an event and resume. Return what went wrong, if anything."""
    write_remains(record, at, rng, place)
    try:
        if lost := find_lost(record, at, place):
            return "lost " + "; ".join(lost)
        train(place)
    except (UserError, OSError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    found = read_files(place / "run")
    differ = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return f"other files: {', '.join(differ)}" if differ else None


def measure(
    cuts: int, seed: int, root: Path, show: Callable[[str], object] = lambda _: None
) -> dict[str, Any]:
    began, rng = time.perf_counter(), random.Random(seed)
    write_text(root / "text.txt", TEXT)
    failed, events = [], {}
    for name, broken in {"whole": set[int](), "not finite": BROKEN}.items():
        with breaking(broken):
            record = record_run(root / name)
            expected, events[name] = read_files(root / name / "run"), len(record.events)
            for number in range(cuts // 2):
                place = root / f"cut-{name}-{number}"
                at = rng.randint(0, events[name])
                if (wrong := cut(record, expected, at, random.Random(number), place)) is not None:
                    failed.append(f"{name}, event {at}, number {number}: {wrong}")
                    show(failed[-1])
                shutil.rmtree(place)
    return {
        "bench": "power_loss",
        "cuts": 2 * (cuts // 2),
        "events": events,
        "resumed_equal": 2 * (cuts // 2) - len(failed),
        "lost": [each for each in failed if ": lost " in each],
        "failed": failed[:10],
        "seconds": round(time.perf_counter() - began, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="clearhead-power-") as place:
        figures = measure(SHORT if args.short else args.cuts, args.seed, Path(place))
    print(json.dumps(figures))
    raise SystemExit(1 if figures["failed"] else 0)
