"""Training runs that the server starts: each in its own process, one at a time, stopped with the server."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from clearhead.api import runs as api
from clearhead.errors import UserError
from clearhead.files import open_regular, read_all, read_json
from clearhead.processes import python, python_environment
from clearhead.runs.demo import STORIES
from clearhead.runs.listing import describe_run, is_extendable, is_held, resume_command
from clearhead.runs.run_folder import is_run
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError, truncate_values
from clearhead.server.model_loader import ModelLoader, strip_folders
from clearhead.server.run_registry import PendingRun, RunRegistry
from clearhead.text.stories import stories

LOG_FILE = "train.log"
ERROR_FILE = "error.json"  # the code and values of the process's error, deleted once read
OPTIONS = {  # of `train`
    *("minutes", "steps", "preset", "blocks", "heads", "width", "context"),
    *("batch", "tokenizer", "vocab", "seed", "snapshots"),
}
STOP_TIMEOUT = 60.0  # seconds to save a checkpoint and exit
LOG_TAIL = 2**12  # bytes at the end of the log that are searched for its last line


@dataclass
class TrainingProcess:
    """A running `clearhead train`."""

    name: str
    folder: Path
    process: asyncio.subprocess.Process
    stopping: bool = False

    def stop(self) -> None:
        """Interrupt the process as Ctrl-C does: it saves a checkpoint and exits."""
        self.stopping = True
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGINT)


class TrainingManager:
    """Starts, stops, resumes and extends runs.

    New runs go to the first searched folder; without one, none can start.
    """

    def __init__(
        self,
        runs: RunRegistry,
        loader: ModelLoader,
        device: str | None = None,
        log: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.runs, self.loader, self.device, self.log = runs, loader, device, log
        self.folder = next(iter(runs.folders or []), None)
        self.current: TrainingProcess | None = None
        self.errors: dict[str, api.RunError] = {}  # by run name
        self._starting = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, body: api.RunRequest) -> None:
        """Start a run in a new folder, which also gets a copy of its text."""
        parent = self._check_available()
        if body.minutes is not None and body.steps is not None:
            raise APIError(
                400, "invalid_request", "both minutes and steps were given: expected only one", "steps"
            )
        folder = parent / body.name
        self._starting = True
        try:
            text = await in_thread(lambda _: _create_folder(folder, body))
            settings = body.model_dump(include=OPTIONS, exclude_none=True)
            options = [part for name, value in settings.items() for part in (f"--{name}", f"{value}")]
            await self._launch(body.name, folder, ["train", str(text), "--out", str(folder), *options])
        finally:
            self._starting = False

    async def resume(self, name: str, minutes: float | None = None) -> None:
        """Resume a stopped run, or extend a finished one by `minutes`, with the command that started it."""
        self._check_available()
        pending = (await in_thread(lambda _: self.runs.pending())).get(name)
        if pending is None:
            folder = self._find(name)
            command = self._resume_command(name, folder, minutes)
        else:
            folder = pending.folder
            command = _resume_pending(name, pending, minutes)
        self._starting = True
        try:
            await self._launch(name, folder, command, extend=minutes is not None)
        finally:
            self._starting = False

    def _resume_command(self, name: str, folder: Path, minutes: float | None) -> list[str]:
        """Return the command that resumes or extends a run; raise APIError if that is not possible."""
        run = describe_run(folder)
        if run.teacher is not None:
            student = self.runs.student_of(run) or ""
            message = f"the run {name!r} is a teacher of {student!r}: resume or extend that run"
            raise APIError(409, "run_is_a_teacher", message, "name", name=name, student=student)
        if run.finished and minutes is None:
            message = f"the run {name!r} is finished: to extend it, give a number of minutes"
            raise APIError(409, "run_is_finished", message, "minutes", name=name)
        if is_held(folder):
            raise APIError(409, "already_training", f"the run {name!r} is already training", "name")
        if not run.finished and minutes is not None:
            raise _not_finished(name)
        command = resume_command(run.command, folder, minutes)
        if command is None:
            raise _from_python(name)
        if run.finished and not is_extendable(run):
            message = f"the run {name!r} has no checkpoint to extend it from: start a new run"
            raise APIError(409, "run_is_not_extendable", message, "name", name=name)
        return command

    def stop(self, name: str) -> None:
        """Stop a run of this server. Does nothing if the run is not training."""
        if self.current is not None and self.current.name == name:
            self.current.stop()
            return
        if is_held(self._find(name)):
            message = (
                f"the run {name!r} was not started by this server: stop it where it was started, with Ctrl-C"
            )
            raise APIError(409, "started_elsewhere", message, "name", name=name)

    def _check_available(self) -> Path:
        """Return the folder for new runs, or raise APIError if no run can start now."""
        if self.folder is None:
            raise APIError(404, "cannot_be_trained", "this server does not train models", "name")
        if self.current is not None or self._starting:
            name = "another run" if self.current is None else self.current.name
            message = f"{name} is training; only one run trains at a time"
            raise APIError(409, "already_training", message)
        return self.folder

    def _find(self, name: str) -> Path:
        folder = self.runs.find(name)
        if folder is None:
            raise APIError(404, "run_not_found", f"the run {name!r} does not exist", "name", name=name)
        return folder

    async def _launch(self, name: str, folder: Path, command: Sequence[str], extend: bool = False) -> None:
        self.errors.pop(name, None)
        device = [] if self.device is None or "--device" in command else ["--device", self.device]
        if (folder / LOG_FILE).exists():
            open_regular(folder / LOG_FILE).close()  # opening a pipe for writing would wait for a reader
        with (folder / LOG_FILE).open("ab") as log_file:
            process = await _spawn([*command, *device], log_file, folder / ERROR_FILE, extend)
        self.current = TrainingProcess(name, folder, process)
        self.log(f"training {name} in process {process.pid}")
        self._task = asyncio.create_task(self._watch(self.current))

    async def _watch(self, training: TrainingProcess) -> None:
        """Wait for the process to exit. If the server shuts down first, stop it and let it save a checkpoint."""
        process = training.process
        try:
            await process.wait()
        except asyncio.CancelledError:
            training.stop()
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
            except TimeoutError:
                process.kill()
                await process.wait()
            raise
        finally:
            code = process.returncode
            self.log(f"{training.name}: the training process exited with code {code}")
            if code and not training.stopping:
                self.errors[training.name] = _read_error(training.folder)
            if not is_run(training.folder) and _is_unused(training.folder):
                shutil.rmtree(training.folder, ignore_errors=True)  # training never started
            self.current = None
        await self.loader.unload(training.folder)


def _resume_pending(name: str, run: PendingRun, minutes: float | None) -> list[str]:
    """Return the command that resumes a run whose teachers are not all trained; raise APIError if there is none."""
    if run.running:
        raise APIError(409, "already_training", f"the run {name!r} is already training", "name")
    if minutes is not None:
        raise _not_finished(name)
    if run.command is None:
        raise _from_python(name)
    return run.command


def _not_finished(name: str) -> APIError:
    message = f"the run {name!r} is not finished: resume it without minutes, and extend it afterward"
    return APIError(409, "run_is_not_finished", message, "minutes", name=name)


def _from_python(name: str) -> APIError:
    message = f"the run {name!r} was started from Python: resume it there"
    return APIError(409, "started_elsewhere", message, "name", name=name)


def _create_folder(folder: Path, body: api.RunRequest) -> Path:
    """Create the run's folder, write its text there and return the text's path."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError:
        message = f"{body.name!r} already exists: choose another name"
        raise APIError(409, "name_taken", message, "name", name=body.name) from None
    except OSError as error:
        message = f"the run's folder cannot be created: {error.strerror}"
        raise APIError(409, "cannot_be_written", message, "name") from None
    stem = re.sub(r"[^\w.-]+", "-", body.text_name.rpartition(".")[0] or body.text_name).strip(".-")[:80]
    path = folder / f"{'stories' if body.text is None else stem or 'text'}.txt"
    text = _built_in_stories() if body.text is None else body.text
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except (OSError, UnicodeEncodeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else "it is not valid Unicode"
        message = f"the text cannot be written: {reason}"
        raise APIError(400, "invalid_request", message, "text") from None
    return path


def _built_in_stories() -> str:
    """Return as many stories as the demo trains on."""
    return "\n\n".join(story.text for story in islice(stories(), STORIES))


async def _spawn(
    command: Sequence[str], log_file: IO[bytes], error_file: Path, extend: bool
) -> asyncio.subprocess.Process:
    """Start `clearhead` in its own session, so that only the server receives a Ctrl-C at its terminal.

    With `extend`, it extends a finished run even if the command is the one that the run was started with.
    """
    variables = {"CLEARHEAD_ERROR_FILE": str(error_file), "CLEARHEAD_CONFIG": ""}
    if extend:
        variables["CLEARHEAD_EXTEND"] = "1"
    return await asyncio.create_subprocess_exec(
        *python("clearhead", *command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log_file,
        stderr=log_file,
        # The request defines the run: the user's clearhead.toml is ignored.
        env=python_environment(**variables),
        start_new_session=True,
    )


def _is_unused(folder: Path) -> bool:
    """Return whether the folder contains nothing but a text, a log and an error."""
    try:
        return all(path.name in (LOG_FILE, ERROR_FILE) or path.suffix == ".txt" for path in folder.iterdir())
    except OSError:
        return False


def _read_error(folder: Path) -> api.RunError:
    """Return the last line of the log, with the error's code and values if the process wrote them."""
    path = folder / ERROR_FILE
    try:
        error = read_json(path)
        path.unlink()
    except (UserError, OSError):
        error = {}
    return api.RunError(
        message=_last_line(folder), code=error.get("code"), values=truncate_values(error.get("values", {}))
    )


def _last_line(folder: Path) -> str:
    """Return the last line of the log, without paths."""
    try:
        with open_regular(folder / LOG_FILE) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL))
            lines = read_all(file, LOG_TAIL).decode("utf-8", "replace").split("\n")
    except (UserError, OSError):
        lines = []
    line = next(
        (line.strip() for line in reversed(lines) if line.strip()), "the process exited without output"
    )
    return strip_folders(line.removeprefix("clearhead: "), folder)[:500]
