"""The runs on this disk: settings and progress, from run.json and the last line of the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from clearhead.errors import UserError
from clearhead.files import read_json
from clearhead.formats.opening import list_snapshots
from clearhead.runs.run_folder import METRICS, RUN, read_record

LAST = 2**16  # bytes at the end of the metrics that are searched for the last line


@dataclass(frozen=True)
class ListedRun:
    """A run in its folder."""

    folder: Path
    finished: bool
    running: bool  # whether a process is training in the folder now
    steps_planned: int
    steps_done: int
    tokens: int  # processed so far
    minutes: float | None  # of a timed run
    kind: str  # kind of network
    preset: str | None  # of a transformer
    texts: list[str]  # file names of the texts, if the command lists them
    snapshots: list[int]  # steps of the snapshots
    command: list[str]


def find_runs(places: Sequence[Path]) -> list[Path]:
    """The run folders among these places and directly inside them."""
    found = [folder for place in places for folder in [place, *sorted(place.glob("*"))]]
    return [folder for folder in found if (folder / RUN).is_file()]


def describe_run(folder: Path) -> ListedRun:
    """Describe a run from run.json and the last line of the metrics."""
    settings, last = read_json(folder / RUN), _last_record(folder / METRICS)
    try:
        request = settings["request"]
        kind = str(request.get("kind", "transformer"))
        command = [str(word) for word in settings["command"]]
        minutes = request["minutes"]
        return ListedRun(
            folder,
            finished=bool(settings["finished"]),
            running=is_held(folder),
            steps_planned=planned_steps(settings, int(last.get("step", 0))),
            steps_done=int(last.get("step", 0)),
            tokens=int(last.get("tokens", 0)),
            minutes=None if minutes is None else float(minutes),
            kind=kind,
            preset=str(request["preset"]) if kind == "transformer" else None,
            texts=list_texts(command),
            snapshots=list_snapshots(folder),
            command=command,
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{folder / RUN} was written by another version, or is damaged") from None


def planned_steps(settings: dict[str, Any], done: int) -> int:
    """The number of steps of a run; for an unfinished timed run, this is an estimate."""
    if settings["finished"]:
        return done
    return max(done, int(settings["plan"]["recipe"]["steps"]))


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock on the run folder; the lock of a killed process does not count."""
    path = folder / ".lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # the folder is not writable, so nothing trains in it
    lock.release()
    return False


def resume_command(command: Sequence[str], folder: Path) -> list[str] | None:
    """The arguments with which `clearhead` resumes the run; None if it was started from Python.

    They are those of the original command, with --resume and the current folder.
    """
    if list(command[1:2]) != ["train"]:
        return None
    words, given = [word for word in command[1:] if word != "--resume"], False
    for i, word in enumerate(words):
        if word in ("--out", "-o") and i + 1 < len(words):
            words[i + 1], given = str(folder), True
        elif word.startswith("--out="):
            words[i], given = f"--out={folder}", True
    return [*words, *([] if given else ["--out", str(folder)]), "--resume"]


def list_texts(command: Sequence[str]) -> list[str]:
    """The arguments between `train` and the first option."""
    if list(command[1:2]) != ["train"]:
        return []
    options = [i for i, word in enumerate(command) if i > 1 and word.startswith("-")]
    return [Path(word).name for word in command[2 : min(options, default=len(command))]]


def _last_record(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LAST))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return {}
    records = map(read_record, reversed(lines))
    return next((record for record in records if record is not None), {})
