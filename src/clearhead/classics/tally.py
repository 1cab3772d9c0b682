"""Count integers that do not fit in memory: sorted, counted runs on disk are merged at the end."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
ENTRY = np.dtype([("key", "<i8"), ("count", "<i8")])
FAN = 16  # sorted runs merged at a time (fan-in)
BYTES_PER_KEY = 64  # memory per key while sorting and counting


class Tally:
    """Counts how many times each integer was added, in about `memory` bytes plus the result."""

    def __init__(self, folder: Path, memory: int) -> None:
        self.folder = folder
        self.capacity = max(2 * FAN, memory // BYTES_PER_KEY)
        self.spills = 0
        self._held: list[Keys] = []
        self._n_held = 0
        self._levels: list[list[Path]] = [[]]  # each run of a level merges FAN runs of the previous level
        self._numbers = count()

    def add(self, keys: Keys) -> None:
        for start in range(0, len(keys), self.capacity):
            part = keys[start : start + self.capacity]
            if self._n_held + len(part) > self.capacity:
                self._spill()
            self._held.append(part)
            self._n_held += len(part)

    def result(self) -> tuple[Keys, Keys]:
        """All integers added, in ascending order, with their counts. Empties the tally."""
        if self.spills == 0:
            keys, counts = _count(self._held)
            self._held, self._n_held = [], 0
            return keys, counts
        self._spill()
        path = self._merge([path for level in self._levels for path in level])
        entries = np.fromfile(path, ENTRY)
        path.unlink()
        self._levels = [[]]
        return entries["key"].copy(), entries["count"].copy()

    def _spill(self) -> None:
        keys, counts = _count(self._held)
        self._held, self._n_held = [], 0
        if not len(keys):
            return
        run = np.empty(len(keys), ENTRY)
        run["key"], run["count"] = keys, counts
        path = self._new_path()
        run.tofile(path)
        self.spills += 1
        for level in range(len(self._levels) + 1):
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(path)
            if len(self._levels[level]) < FAN:
                break
            path = self._merge(self._levels[level])
            self._levels[level] = []

    def _merge(self, paths: list[Path]) -> Path:
        """Merge several runs into one, block by block."""
        runs = [np.memmap(path, ENTRY, mode="r") for path in paths]
        block = max(1, self.capacity // len(runs))
        places = [0] * len(runs)
        merged = self._new_path()
        with merged.open("xb") as file:
            while live := [i for i, run in enumerate(runs) if places[i] < len(run)]:
                heads = [np.asarray(runs[i][places[i] : places[i] + block]) for i in live]
                cut = min(head["key"][-1] for head in heads)  # keys up to here are complete in all blocks
                lengths = [int(np.searchsorted(head["key"], cut, side="right")) for head in heads]
                for i, length in zip(live, lengths, strict=True):
                    places[i] += length
                parts = [head[:length] for head, length in zip(heads, lengths, strict=True)]
                _add_up(np.concatenate(parts)).tofile(file)
        del runs, heads, parts  # some systems cannot delete memory-mapped files
        for path in paths:
            path.unlink()
        return merged

    def _new_path(self) -> Path:
        return self.folder / f"run-{next(self._numbers)}"


def _count(held: list[Keys]) -> tuple[Keys, Keys]:
    if not held:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys, counts = np.unique(np.concatenate(held), return_counts=True)
    return keys, counts.astype(np.int64)


def _add_up(entries: NDArray[np.void]) -> NDArray[np.void]:
    """Sort the keys and add up the counts of equal ones."""
    entries = entries[np.argsort(entries["key"], kind="stable")]
    first = np.flatnonzero(np.r_[True, entries["key"][1:] != entries["key"][:-1]])
    summed = entries[first]
    summed["count"] = np.add.reduceat(entries["count"], first)
    return summed
