"""The training runs by name: those in the searched folders, and those of the served models."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import UserError
from clearhead.formats.opening import SNAPSHOT, find_snapshot, name_of
from clearhead.runs.following import Follower
from clearhead.runs.listing import ListedRun, describe_run, resume_command
from clearhead.runs.run_folder import is_run
from clearhead.runs.teacher_folders import find_runs, teacher_in
from clearhead.server.model_registry import ModelRegistry, unique_name


@dataclass(frozen=True)
class PendingRun:
    """A run that has not started: its teachers are trained first."""

    folder: Path
    teachers: list[ListedRun]  # those that have started

    @property
    def running(self) -> bool:
        return any(each.running for each in self.teachers)

    @property
    def command(self) -> list[str] | None:
        """The command that resumes it, stored with its teachers; None if it was started from Python."""
        return resume_command(self.teachers[0].command, self.folder)


class RunRegistry:
    """The only place where a run's name is resolved: a name is never used as a path."""

    def __init__(self, registry: ModelRegistry, folders: Sequence[Path] | None) -> None:
        """`folders` are searched for runs; None disables runs."""
        self.registry, self.folders = registry, folders
        self.runs: dict[str, Path] = {}
        self._followers: dict[Path, Follower] = {}
        self._lock = threading.RLock()  # requests scan in worker threads

    def scan(self) -> dict[str, ListedRun]:
        """Return the runs on disk, newest first. A name always refers to the same run."""
        if self.folders is None:
            return {}
        with self._lock:
            self._name_runs(self.folders)
            runs = dict(self.runs)
        found = {}
        for name, folder in runs.items():
            try:
                found[name] = describe_run(folder)
            except UserError:
                continue  # damaged
        return dict(sorted(found.items(), key=lambda item: -_modified(item[1].folder)))

    def _name_runs(self, folders: Sequence[Path]) -> None:
        served = [each.listed.path for each in self.registry if each.listed is not None]
        found = [*find_runs(folders), *(path for path in served if is_run(path))]
        by_path = {folder.resolve(): folder for folder in found}
        names = {folder.resolve(): name for name, folder in self.runs.items() if is_run(folder)}
        self.runs = {name: by_path[path] for path, name in names.items() if path in by_path}
        for path, folder in by_path.items():
            if path not in names:
                self.runs[unique_name(_suggest_name(folder), self.runs)] = folder

    def find(self, name: str) -> Path | None:
        """Return the folder of a run, scanning again if the name is unknown."""
        if name not in self.runs and self.folders is not None:
            with self._lock:
                self._name_runs(self.folders)
        return self.runs.get(name)

    def find_snapshot(self, name: str) -> Path | None:
        """Return the folder of a snapshot, named RUN@STEP."""
        run, mark, step = name.rpartition(SNAPSHOT)
        if not mark or not step.isascii() or not step.isdigit() or len(step) > 12:
            return None
        folder = self.find(run)
        if folder is None:
            return None
        try:
            return find_snapshot(folder, int(step))
        except UserError:
            return None

    def pending(self, runs: Mapping[str, ListedRun] | None = None) -> dict[str, PendingRun]:
        """Return the runs that have not started because their teachers come first. Without `runs`, scan first."""
        runs = self.scan() if runs is None else runs
        found: dict[Path, list[ListedRun]] = {}
        for run in runs.values():
            if run.student is not None and not is_run(run.student):
                found.setdefault(run.student, []).append(run)
        named = {name_of(folder): PendingRun(folder, teachers) for folder, teachers in found.items()}
        return {name: run for name, run in named.items() if name not in runs}

    def student_of(self, run: ListedRun) -> str | None:
        """Return the name of the run that a teacher teaches; that run may not have started."""
        if run.student is None:
            return None
        path = run.student.resolve()
        return next((name for name, folder in self.runs.items() if folder.resolve() == path), name_of(path))

    def follow(self, folder: Path) -> Follower:
        """Return the run's follower, with its metrics up to date."""
        with self._lock:
            follower = self._followers.setdefault(folder, Follower(folder))
            follower.look()
        return follower

    def model_of(self, folder: Path) -> str | None:
        """Return the name of the model that a run saved in its folder."""
        path = folder.resolve()
        return next(
            (
                each.name
                for each in self.registry
                if each.listed is not None and each.listed.path.resolve() == path
            ),
            None,
        )


def _suggest_name(folder: Path) -> Path:
    """Return the folder or, for a teacher, a name such as `my-teacher-2`."""
    teacher = teacher_in(folder)
    return folder if teacher is None else Path(f"{name_of(teacher.student)}-teacher-{teacher.number}")


def _modified(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
