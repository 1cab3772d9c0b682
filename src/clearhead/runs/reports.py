"""Experiment tracking: a run's metrics in TensorBoard and Weights & Biases, on request.

Their files are in the run folder, in `tensorboard/` and `wandb/`. Unlike everything else there, they contain
timestamps: identical runs have identical files except for these. The packages are imported only on request.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.files import read_json, read_text, write_text
from clearhead.runs.progress import Progress

TENSORBOARD, WANDB = "tensorboard", "wandb"  # packages, and folders
PATIENCE = 60.0  # seconds for W&B to upload the rest when the run ends


class Reporter(Protocol):
    name: str
    place: str  # where or how to view it

    def begin(self, folder: Path) -> None: ...

    def add(self, progress: Progress) -> None: ...

    def close(self, failed: bool) -> None: ...


class Reports:
    """All requested reporters. If one fails, this is noted once, and the run continues without it."""

    def __init__(self, tensorboard: bool = False, wandb: str | None = None) -> None:
        """`wandb` is the project. A missing package is reported now, before anything is trained."""
        self.reporters: list[Reporter] = []
        if tensorboard:
            self.reporters.append(TensorBoard())
        if wandb is not None:
            self.reporters.append(WeightsAndBiases(wandb))

    def begin(self, folder: Path) -> list[str]:
        """Start reporting in the run folder, before the first step. Each method returns messages for the user."""
        return self._each(lambda reporter: reporter.begin(folder), "training continues without it")

    def add(self, progress: Progress) -> list[str]:
        return self._each(lambda reporter: reporter.add(progress), "training continues without it")

    def close(self, failed: bool = False) -> list[str]:
        notes = self._each(lambda reporter: reporter.close(failed), "what it recorded is in its folder")
        self.reporters.clear()
        return notes

    def _each(self, work: Callable[[Reporter], None], consequence: str) -> list[str]:
        notes = []
        for reporter in list(self.reporters):
            try:
                work(reporter)
            except UserError:
                raise
            except Exception as error:
                notes.append(f"{reporter.name} failed ({_describe(error)}); {consequence}")
                self.reporters.remove(reporter)
        return notes


def check_working_folder() -> None:
    """Raise if W&B would read its settings from the working folder, which may be someone else's.

    These settings can determine where the metrics and the API key are sent.
    """
    for path in (Path("wandb", "settings"), Path(".wandb", "settings")):
        if path.exists():
            raise UserError(
                f"W&B would read {path} in the working folder, which can redirect the API key: delete that file, or "
                "work in another folder; if you need its settings, set WANDB_ENTITY and WANDB_BASE_URL instead"
            )


class TensorBoard:
    """One event per step.

    A run that is resumed or returns to an earlier step starts a new file, which hides repeated steps. Events are
    written directly: torch's SummaryWriter writes in a thread, which dies with a traceback when the disk is full.
    """

    name = "TensorBoard"

    def __init__(self) -> None:
        require(TENSORBOARD, "`tensorboard`")
        self.path: Path | None = None
        self.step = 0

    def begin(self, folder: Path) -> None:
        self.folder = folder / TENSORBOARD
        self.place = f"tensorboard --logdir {self.folder}"

    def add(self, progress: Progress) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        step = progress.record.step
        if self.path is None or step <= self.step:
            self._open(step)
        values = [Summary.Value(tag=name, simple_value=number) for name, number in _numbers(progress).items()]
        self._write(step=step, summary=Summary(value=values))
        self.step = step

    def close(self, failed: bool) -> None:
        """Nothing to do: every event is already written."""

    def _open(self, step: int) -> None:
        """Start a new file, last by name, which supersedes this step and all later ones in earlier files."""
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / f"events.out.tfevents.{time.time_ns()}"
        self._write(file_version="brain.Event:2")
        self._write(step=step, session_log=SessionLog(status=SessionLog.START))

    def _write(self, **what: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        assert self.path is not None
        with self.path.open("ab") as file:
            RecordWriter(file).write(Event(wall_time=time.time(), **what).SerializeToString())


class WeightsAndBiases:
    """One W&B run, resumed under the same id, which is kept in `wandb/`.

    Repeated steps appear twice.
    """

    name = "W&B"

    def __init__(self, project: str) -> None:
        if not project.strip():
            raise UserError(f"wandb = {project!r}: expected the name of a W&B project, such as stories")
        require(WANDB, "`wandb`")
        self.project = project

    def begin(self, folder: Path) -> None:
        import wandb

        kept = folder / WANDB / "run-id"
        run_id = read_text(kept).strip() if kept.exists() else secrets.token_hex(4)
        try:
            self.run = wandb.init(
                project=self.project,
                name=folder.name,
                id=run_id,
                resume="allow",
                reinit="create_new",  # the caller of `train` may have a run of their own
                dir=folder.resolve(),
                config={name: read_json(folder / "run.json")[name] for name in ("request", "plan")},
                settings=wandb.Settings(
                    silent=True, console="off", finish_timeout=PATIENCE, finish_timeout_raises=True
                ),
            )
        except (wandb.errors.UsageError, wandb.errors.AuthenticationError) as error:
            raise UserError(
                f"W&B failed ({_describe(error)}): log in, or set WANDB_MODE=offline to keep its records in "
                "the run folder"
            ) from None
        kept.parent.mkdir(exist_ok=True)
        write_text(kept, f"{run_id}\n")
        # W&B's own step count cannot go back, so plot against the step as a metric.
        self.run.define_metric("*", step_metric="step")
        offline = f"wandb sync {folder / WANDB / 'offline-run-*'}"
        self.place = offline if self.run.offline else self.run.url or "disabled"

    def add(self, progress: Progress) -> None:
        self.run.log({"step": progress.record.step, **_numbers(progress)})

    def close(self, failed: bool) -> None:
        self.run.finish(exit_code=int(failed))


def _numbers(progress: Progress) -> dict[str, float]:
    """The finite metrics of a step, and its speed."""
    metrics = {name: number for name, number in progress.metrics().items() if number is not None}
    del metrics["step"]
    return {**metrics, "tokens_per_second": progress.tokens_per_second}


def _describe(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return " ".join((reason or str(error) or type(error).__name__).split())
