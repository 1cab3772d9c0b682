"""Training a run beside the server: a process of its own, one at a time, which ends with the server."""

from __future__ import annotations

import asyncio
import json
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
from clearhead.runs.demo import STORIES
from clearhead.runs.listing import describe_run, is_held, resume_command
from clearhead.runs.run_folder import is_run
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError, truncate_values
from clearhead.server.model_loader import ModelLoader, strip_folders
from clearhead.server.run_registry import RunRegistry
from clearhead.text.stories import stories

LOG = "train.log"
REFUSAL = "refusal.json"  # for a moment: what the process has to say beside the last line of its log
OPTIONS = {"minutes", "steps", "preset", "blocks", "heads", "width", "context", "snapshots"}  # of `train`
PATIENCE = 60.0  # seconds to save and leave
LAST = 2**12  # bytes of the log in which its last line is looked for


@dataclass
class TrainingProcess:
    """A process that trains."""

    name: str
    folder: Path
    process: asyncio.subprocess.Process
    stopping: bool = False

    def stop(self) -> None:
        """As Ctrl-C does: it saves where it stands, and leaves."""
        self.stopping = True
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGINT)


class TrainingManager:
    """New runs go to the first place; without one, none is begun here."""

    def __init__(
        self,
        runs: RunRegistry,
        loader: ModelLoader,
        device: str | None = None,
        log: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.runs, self.loader, self.device, self.log = runs, loader, device, log
        self.place = next(iter(runs.places or []), None)
        self.child: TrainingProcess | None = None
        self.errors: dict[str, api.RunError] = {}  # by run: why it did not begin, or ended
        self._beginning = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, body: api.RunRequest) -> None:
        """Begin a run in a folder of its own, with its text and what it says in it."""
        place = self._may_begin()
        if body.minutes is not None and body.steps is not None:
            raise APIError(
                400, "invalid_request", "minutes and steps were both given; give one of them", "steps"
            )
        folder = place / body.name
        self._beginning = True
        try:
            text = await in_thread(lambda _: _prepare(folder, body))
            given = body.model_dump(include=OPTIONS, exclude_none=True)
            options = [word for name, value in given.items() for word in (f"--{name}", f"{value}")]
            await self._begin(body.name, folder, ["train", str(text), "--out", str(folder), *options])
        finally:
            self._beginning = False

    async def resume(self, name: str) -> None:
        """Go on with a run by the command that began it."""
        self._may_begin()
        folder = self._find(name)
        run = describe_run(folder)
        if run.finished:
            what = f"{name!r} is finished: there is nothing to go on with"
            raise APIError(409, "run_is_finished", what, "name", name=name)
        if is_held(folder):
            raise APIError(409, "already_training", f"{name!r} is being trained already", "name")
        command = resume_command(run.command, folder)
        if command is None:
            what = f"{name!r} was begun from Python: go on with it from there"
            raise APIError(409, "begun_elsewhere", what, "name", name=name)
        self._beginning = True
        try:
            await self._begin(name, folder, command)
        finally:
            self._beginning = False

    def stop(self, name: str) -> None:
        """Where it does not train any more, this does nothing."""
        if self.child is not None and self.child.name == name:
            self.child.stop()
            return
        if is_held(self._find(name)):
            what = f"{name!r} was begun elsewhere: stop it there, with Ctrl-C"
            raise APIError(409, "begun_elsewhere", what, "name", name=name)

    def _may_begin(self) -> Path:
        if self.place is None:
            raise APIError(404, "cannot_be_trained", "nothing can be trained here", "name")
        if self.child is not None or self._beginning:
            name = "another run" if self.child is None else self.child.name
            raise APIError(409, "already_training", f"{name} is being trained: one at a time")
        return self.place

    def _find(self, name: str) -> Path:
        folder = self.runs.find(name)
        if folder is None:
            raise APIError(404, "run_not_found", f"there is no run {name!r}", "name", name=name)
        return folder

    async def _begin(self, name: str, folder: Path, command: Sequence[str]) -> None:
        self.errors.pop(name, None)
        device = [] if self.device is None or "--device" in command else ["--device", self.device]
        with (folder / LOG).open("ab") as log:
            process = await _spawn([*command, *device], log, folder / REFUSAL)
        self.child = TrainingProcess(name, folder, process)
        self.log(f"training {name}, process {process.pid}")
        self._task = asyncio.create_task(self._watch(self.child))

    async def _watch(self, child: TrainingProcess) -> None:
        """Until it ends; where the server ends first, it is stopped, and its state saved."""
        try:
            await child.process.wait()
        except asyncio.CancelledError:
            child.stop()
            try:
                await asyncio.wait_for(child.process.wait(), PATIENCE)
            except TimeoutError:
                child.process.kill()
                await child.process.wait()
            raise
        finally:
            code = child.process.returncode
            self.log(f"trained {child.name}: the process ended with {code}")
            if code and not child.stopping:
                self.errors[child.name] = _read_error(child.folder)
            if not is_run(child.folder) and _is_ours(child.folder):
                shutil.rmtree(child.folder, ignore_errors=True)  # it never began
            self.child = None
        await self.loader.renew(child.folder)


def _prepare(folder: Path, body: api.RunRequest) -> Path:
    """The run's folder, with its text in it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError:
        what = f"there is a {body.name!r} already; choose another name"
        raise APIError(409, "name_taken", what, "name", name=body.name) from None
    except OSError as error:
        raise APIError(
            409, "cannot_be_written", f"no run can be kept here: {error.strerror}", "name"
        ) from None
    stem = re.sub(r"[^\w.-]+", "-", body.text_name.rpartition(".")[0] or body.text_name).strip(".-")[:80]
    path = folder / f"{'stories' if body.text is None else stem or 'text'}.txt"
    text = _stories() if body.text is None else body.text
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except (OSError, UnicodeEncodeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        why = error.strerror if isinstance(error, OSError) else "it is no whole text"
        raise APIError(400, "invalid_request", f"the text could not be kept: {why}", "text") from None
    return path


def _stories() -> str:
    """The embedded ones, as many as the demo reads."""
    return "\n\n".join(story.text for story in islice(stories(), STORIES))


async def _spawn(command: Sequence[str], log: IO[bytes], refusal: Path) -> asyncio.subprocess.Process:
    """`clearhead` in a session of its own: a Ctrl-C at the server's terminal is the server's to hand on."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "clearhead",
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        # What the page says is all that counts.
        env={**os.environ, "CLEARHEAD_REFUSAL": str(refusal), "CLEARHEAD_CONFIG": ""},
        start_new_session=True,
    )


def _is_ours(folder: Path) -> bool:
    """Whether nothing is in it but a text, a log, and why it did not begin."""
    try:
        return all(path.name in (LOG, REFUSAL) or path.suffix == ".txt" for path in folder.iterdir())
    except OSError:
        return False


def _read_error(folder: Path) -> api.RunError:
    """What it said last; and what that is called, where it had a name for it."""
    path = folder / REFUSAL
    try:
        told = json.loads(path.read_bytes())
        path.unlink()
    except (OSError, ValueError):
        told = {}
    return api.RunError(
        message=_last_line(folder), code=told.get("code"), values=truncate_values(told.get("values", {}))
    )


def _last_line(folder: Path) -> str:
    """What it said last, without where things lie."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(0, (folder / LOG).stat().st_size - LAST))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    said = next((line.strip() for line in reversed(lines) if line.strip()), "it ended without a word")
    return strip_folders(said.removeprefix("clearhead: "), folder)[:500]
