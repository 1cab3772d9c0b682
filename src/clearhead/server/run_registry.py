"""The runs by name: those where models are looked for, and those of the models that are served."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from clearhead.errors import UserError
from clearhead.formats.opening import SNAPSHOT, find_snapshot
from clearhead.runs.following import Follower
from clearhead.runs.listing import ListedRun, describe_run, find_runs
from clearhead.runs.run_folder import is_run
from clearhead.server.model_registry import ModelRegistry, unique_name


class RunRegistry:
    """Names are looked up here: none is ever a path. Without places there is no run."""

    def __init__(self, registry: ModelRegistry, places: Sequence[Path] | None) -> None:
        self.registry, self.places = registry, places
        self.folders: dict[str, Path] = {}
        self._followers: dict[Path, Follower] = {}
        self._one = threading.RLock()  # who looks does so in a thread of his own

    def look(self) -> dict[str, ListedRun]:
        """What is on the disk now, the newest first. A name once given stays the same run's."""
        if self.places is None:
            return {}
        with self._one:
            self._name(self.places)
            folders = dict(self.folders)
        found = {}
        for name, folder in folders.items():
            try:
                found[name] = describe_run(folder)
            except UserError:
                continue  # damaged
        return dict(sorted(found.items(), key=lambda each: -_made(each[1].folder)))

    def _name(self, places: Sequence[Path]) -> None:
        served = [each.listed.path for each in self.registry if each.listed is not None]
        folders = [*find_runs(places), *(path for path in served if is_run(path))]
        there = {folder.resolve(): folder for folder in folders}
        named = {folder.resolve(): name for name, folder in self.folders.items() if is_run(folder)}
        self.folders = {name: there[place] for place, name in named.items() if place in there}
        for place, folder in there.items():
            if place not in named:
                self.folders[unique_name(folder, self.folders)] = folder

    def find(self, name: str) -> Path | None:
        """Where a run lies. One that is new is looked for."""
        if name not in self.folders and self.places is not None:
            with self._one:
                self._name(self.places)
        return self.folders.get(name)

    def find_snapshot(self, name: str) -> Path | None:
        """Where the model lies that goes by the name of its run, an @, and a step."""
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

    def follow(self, folder: Path) -> Follower:
        """With what was new in its metrics."""
        with self._one:
            follower = self._followers.setdefault(folder, Follower(folder))
            follower.look()
        return follower

    def model_of(self, folder: Path) -> str | None:
        """The name of the model that a run saved in its folder."""
        place = folder.resolve()
        return next(
            (
                each.name
                for each in self.registry
                if each.listed is not None and each.listed.path.resolve() == place
            ),
            None,
        )


def _made(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
