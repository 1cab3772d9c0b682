"""A run folder: request and plan, metrics of every step, checkpoints, best model, snapshots.

run.json           the request, its plan, the hash of the text, versions; no timestamps
tokenizer.json …   the tokenizer, saved at the start
metrics.jsonl      one line per step
loss.svg           the loss curve, drawn when the run ends or is stopped
held-out.safetensors  the validation text as tokens, unless it is in separate files
checkpoints/       to resume from; of a finished run, the last one, to extend it from
tensorboard/       event files, if requested; wandb/ likewise
best/              the model with the lowest validation loss, unless it is the last
snapshots/step-…/  the model at a few steps, at increasing intervals
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from clearhead.errors import UserError
from clearhead.files import (
    check_seal,
    disk_errors,
    hash_file,
    make_folder,
    read_json,
    read_sealed,
    seal,
    write_json,
)
from clearhead.formats.network import outline
from clearhead.formats.opening import SNAPSHOTS, snapshot_folder
from clearhead.language_model import LanguageModel
from clearhead.runs.checkpoint import (
    Checkpoint,
    checkpoint_at,
    drop_all_but_newest,
    good_step,
    newest_checkpoint,
    newest_shapes,
    newest_step,
    read_checkpoint,
    read_shards,
    save_checkpoint,
    save_shards,
)
from clearhead.runs.held_out import HELD_OUT, read_held_out, save_held_out
from clearhead.runs.plan import Plan
from clearhead.runs.progress import Progress
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_metrics import METRICS, make_record, open_metrics, read_lines, read_record
from clearhead.runs.staging import begin, drop, put_in_place, recover
from clearhead.runs.teacher_folders import RUN, TEACHERS
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.held_out import HeldOut
from clearhead.text.tokenizer import Tokenizer

CHECKPOINTS, BEST = "checkpoints", "best"
FORMAT = 1
LOOKED_AT = 0.3  # seconds to wait for the lock, which a listing of runs takes briefly to test it
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
PACKAGES = ("clearhead", "torch", "numpy", "tokenizers", "safetensors")


class RunFolder:
    """One process at a time holds the lock on a run folder; in a group, rank 0."""

    def __init__(self, path: Path, held: bool = True) -> None:
        self.path, self.held = path, held
        self.unwritten: list[str] = []  # lines of metrics that could not be written yet
        self.resume = False  # whether the run was started with `resume`
        self.processes: list[int] = []  # the numbers of processes that have trained it so far
        self.left_locked = held and (path / ".lock").exists()  # by a process that was killed
        if not held:
            return
        self.made = [each for each in (path, *path.parents) if not each.exists()]
        with disk_errors(path, "the run was not started"):
            make_folder(path)
            self.lock = FileLock(path / ".lock")
            try:
                self.lock.acquire(timeout=LOOKED_AT, poll_interval=LOOKED_AT / 10)
            except Timeout:
                raise UserError(
                    f"another run is training in {path}: wait for it, or choose another folder with `out`"
                ) from None

            for each in (path, path / CHECKPOINTS, path / SNAPSHOTS):
                recover(each)

    def close(self) -> None:
        if not self.held:
            return
        # Delete the file before releasing the lock: otherwise another process could lock it in between and lose it.
        with suppress(OSError):  # open files on Windows, and files on a read-only disk, cannot be deleted
            (self.path / ".lock").unlink(missing_ok=True)
        self.lock.release()

    def discard(self) -> None:
        """Delete all files of a run that took no step."""
        if not self.held:
            return
        for name in (RUN, METRICS, HELD_OUT, *TOKENIZER):
            (self.path / name).unlink(missing_ok=True)
        self.close()
        if self.path in self.made:
            shutil.rmtree(self.path, ignore_errors=True)  # reports may have been started in it
        for folder in self.made:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()

    def settings(self) -> dict[str, Any] | None:
        """The contents of run.json, or None if no run was started here."""
        if not (self.path / RUN).exists():
            return None
        settings = read_json(self.path / RUN)
        if settings.get("format") != FORMAT or not {"request", "plan", "text_sha256"} <= settings.keys():
            raise UserError(
                f"{self.path / RUN} was written by a different version, or is damaged: choose another folder"
            )
        return check_seal(self.path / RUN, settings)

    def begin(self, run: Run, command: Sequence[str]) -> None:
        """Before the first step, write the run's description.

        It starts with run.json, which marks the folder as a run.
        """
        with disk_errors(self.path, "the run was not started"):
            self.describe(run, command, finished=False)
            self.save_text(run)

    def save_text(self, run: Run) -> None:
        """Save what depends on the text, unless already saved: the tokenizer and the held-out text."""
        if not self._has_tokenizer():
            run.tokenizer.save(self.path, model_max_length=run.plan.config.n_context)
        if not (self.path / HELD_OUT).exists() and (held_out := run.find_held_out()) is not None:
            save_held_out(self.path, held_out)

    def _has_tokenizer(self) -> bool:
        return all((self.path / name).exists() for name in TOKENIZER)

    def tokenizer(self) -> Tokenizer | None:
        """The saved tokenizer; None if it has to be created again.

        This is the case if the run was interrupted before saving it, or if its files are damaged and the unchanged
        text yields the same one.
        """
        if not self._has_tokenizer():
            return None
        settings = self.settings() or {}
        expected = (settings.get("tokenizer") or {}).get("sha256")
        derivable = expected is not None and not settings.get("text_changed") and not settings.get("finished")
        try:
            tokenizer = Tokenizer.load(self.path)
            if expected in (None, tokenizer.sha256):
                return tokenizer
            raise UserError(
                f"the tokenizer in {self.path} is damaged: its files do not match the hash in {RUN}; copy "
                f"{' and '.join(TOKENIZER)} again"
            )
        except UserError:
            if not derivable:
                raise
        for name in TOKENIZER:
            (self.path / name).unlink()
        return None

    def check_plan(self, plan: Plan) -> None:
        """Raise an error if the plan's network is not that of the newest checkpoint, before it is created."""
        shapes = newest_shapes(self.path / CHECKPOINTS)
        if not shapes:
            return
        fits = len(shapes) >= plan.config.n_block  # so that outlining many blocks takes no time
        for name, tensor in outline(plan.config).state_dict().items() if fits else ():
            fits &= shapes.get(f"network.{name}", tuple(tensor.shape)) == tuple(tensor.shape)
        if not fits:
            raise UserError(
                f"the plan in {self.path / RUN} does not match the network in {self.path / CHECKPOINTS}: one is "
                "damaged; copy the folder again"
            )

    def find_held_out(self, tokenizer: Tokenizer | None, group: ProcessGroup) -> HeldOut | None:
        """What the run held out when it was started."""
        end_id = -1 if tokenizer is None else tokenizer.end_id
        return group.run_on_main(lambda: read_held_out(self.path, end_id))

    def describe(self, run: Run, command: Sequence[str], finished: bool) -> None:
        settings = {
            "format": FORMAT,
            "finished": finished,
            "earlier": run.earlier,
            "text_changed": run.held_out is not None,
            "resume": self.resume,
            "request": request_to_json(run.request),
            "teachers": len(run.teachers or ()),
            "plan": run.plan.to_json() | {"config": run.plan.config.to_json()},
            "text_sha256": run.text_sha256,
            "tokens": len(run.tokens),
            "validation_tokens": len(run.validation),
            "held_out_tokens": len(run.whole_validation),
            "validation_bytes": run.validation_bytes,
            "tokenizer": {
                "kind": run.tokenizer.kind,
                "n_vocab": run.tokenizer.n_vocab,
                "sha256": run.tokenizer.sha256,
            },
            "command": list(command),
            "processes": sorted({*self.processes, run.group.world_size}),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {run.device}",
            "versions": {name: _version(name) for name in PACKAGES},
            "metrics_sha256": hash_file(self.path / METRICS) if finished else None,
        }
        write_json(self.path / RUN, seal(settings))

    def restore(self, run: Run) -> None:
        """Restore the run from its newest intact checkpoint, if there is one."""
        folder, lead, good = self.path / CHECKPOINTS, run.group.run_on_main, run.good
        newest, metrics_bytes = lead(lambda: newest_checkpoint(folder)), 0
        if newest is not None:
            named = lead(lambda: good_step(newest))
            path = None if named is None else lead(lambda: checkpoint_at(folder, named))
            if path is not None and path != newest:
                run.restore(self._read(path, run))
                good = run.good
            checkpoint = self._read(newest, run)
            run.restore(checkpoint)
            if (last := lead(lambda: newest_step(folder))) != checkpoint.step:
                run.notes.append(
                    f"the checkpoint of step {last} is damaged (the disk may be failing): resuming from that "
                    f"of step {checkpoint.step}"
                )
            if good.step == named:
                run.good = good
            metrics_bytes = checkpoint.state.get("metrics_bytes", 0)
            expected = checkpoint.state.get("metrics_sha256")
        lead(lambda: self._cut_metrics(metrics_bytes))
        if newest is not None and expected not in (None, lead(lambda: hash_file(self.path / METRICS))):
            run.notes.append(
                f"{self.path / METRICS} is damaged: the losses of earlier steps may be wrong; the model is not affected"
            )

    def _read(self, path: Path, run: Run) -> Checkpoint:
        if run.request.sharded:
            return read_shards(path, run.trainer.tensors(), run.group)
        return read_checkpoint(path)

    def save_checkpoint(self, run: Run, finished: bool = False) -> None:
        """Save a checkpoint, with the step of the good state and the size to which resuming truncates the metrics.

        The checkpoint of a finished run has no times, so that identical runs have identical files.
        """
        up_to = run.trainer.step if run.at_most is not None else None
        metrics_bytes = run.group.run_on_main(lambda: self._settle_metrics(up_to))
        state = {**run.state(), "good": run.good.step, "metrics_bytes": metrics_bytes}
        state["metrics_sha256"] = run.group.run_on_main(lambda: hash_file(self.path / METRICS))
        if finished:
            state |= {"finished": True, "good": run.trainer.step, "seconds": 0.0, "trained": 0.0}
        checkpoint = Checkpoint(run.trainer.step, run.trainer.tensors(), state)
        if run.request.sharded:
            save_shards(self.path / CHECKPOINTS, checkpoint, run.group)
        else:
            run.group.run_on_main(lambda: save_checkpoint(self.path / CHECKPOINTS, checkpoint))

    def drop_checkpoints(self) -> None:
        """Keep only the last state of a finished run."""
        drop_all_but_newest(self.path / CHECKPOINTS)

    def drop_teachers(self) -> None:
        """Delete the teachers of a finished run."""
        drop(self.path / TEACHERS)

    def newest_step(self) -> int | None:
        return newest_step(self.path / CHECKPOINTS)

    def save_best(self, model: LanguageModel) -> None:
        replace_model(self.path / BEST, model)

    def drop_best(self) -> None:
        drop(self.path / BEST)

    def save_snapshot(self, model: LanguageModel, step: int) -> None:
        replace_model(snapshot_folder(self.path, step), model)

    def add_metrics(self, progress: Progress) -> None:
        """Append a line; if that fails, keep it and write it with the next one."""
        self.unwritten.append(json.dumps(make_record(progress)) + "\n")
        lines = "".join(self.unwritten).encode()
        with (self.path / METRICS).open("ab", buffering=0) as file:
            before = file.tell()
            # On a full disk, the write may be partial; the returned length shows it.
            if file.write(lines) != len(lines):
                file.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.unwritten.clear()

    def cut_metrics_after(self, step: int) -> None:
        """Drop the lines of the steps after this one, which were undone."""
        self.unwritten = [line for line in self.unwritten if json.loads(line)["step"] <= step]
        self._cut_metrics(self._settle_metrics(step))

    def _settle_metrics(self, up_to: int | None = None) -> int:
        """Flush the lines so far to disk; return their length in bytes, or that of the lines before a later step."""
        path = self.path / METRICS
        if not path.exists():
            return 0
        with open_metrics(path) as file:
            os.fsync(file.fileno())
            if up_to is None:
                return os.fstat(file.fileno()).st_size
            records = ((line, read_record(line)) for line in read_lines(file))
            kept = takewhile(lambda each: each[1] is None or each[1]["step"] <= up_to, records)
            return sum(len(line) for line, _ in kept)

    def _cut_metrics(self, size: int) -> None:
        """Drop the steps that will be repeated and any truncated line."""
        path = self.path / METRICS
        if not path.exists():
            return
        open_metrics(path).close()  # opening a pipe for writing would wait for a reader
        with disk_errors(self.path, "the run was not resumed"), path.open("r+b") as file:
            file.truncate(file.read(size).rfind(b"\n") + 1)


def is_run(path: Path) -> bool:
    """Whether a run was started in this folder."""
    return os.path.exists(path / RUN)  # noqa: PTH110 (Path.exists raises for a name that is too long)


def is_finished(path: Path) -> bool:
    """Whether the run in this folder is finished."""
    return is_run(path) and bool(read_sealed(path / RUN).get("finished"))


def replace_model(folder: Path, model: LanguageModel) -> None:
    """Replace a saved model; the old one stays until the new one is complete."""
    staged = begin(folder)
    try:
        model.save(staged)
        put_in_place(folder)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def request_to_json(request: TrainingRequest) -> dict[str, Any]:
    settings = {name: value for name, value in vars(request).items() if name != "device"}
    if settings["from_teachers"] is not None:
        settings["from_teachers"] = request.teacher_names
    validation = settings["validation"]
    if isinstance(validation, str | Path):
        settings["validation"] = str(validation)
    elif validation is not None and not isinstance(validation, float):
        settings["validation"] = [str(each) for each in validation]
    return settings


@cache
def _version(package: str) -> str | None:
    """The version of a package; None for clearhead itself when it is run from a source tree."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
