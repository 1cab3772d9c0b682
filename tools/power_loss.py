"""What a power loss leaves on disk: record a program's file operations, and write a folder as a cut may leave it.

The disk is a strict one: what was not flushed may be missing, torn or zero, and directory entries may be written in any
order. A file's content is safe once the file is flushed, its name once the folder that has the entry is. Renames are
atomic. Files are compared before and after each operation, so that writes by native code are seen too. One thread only.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPERATIONS = ("replace", "rename", "mkdir", "unlink", "remove", "rmdir")
ROOT = 0  # the node of the recorded folder

EntryPlace = tuple[int, str]  # the node of a folder, and a name in it


@dataclass(frozen=True)
class Write:
    """A file has this content now."""

    node: int
    content: bytes


@dataclass(frozen=True)
class Entries:
    """These directory entries changed, at once; None is an entry that was removed."""

    changed: dict[EntryPlace, int | None]


@dataclass(frozen=True)
class Flush:
    """A file's content, or a folder's entries, were flushed."""

    node: int


@dataclass(frozen=True)
class Promise:
    """The program has told its caller that this is saved."""

    what: str


FileEvent = Write | Entries | Flush | Promise


@dataclass
class FileLog:
    """Everything that happened in a folder, in order. A node is a file or folder, whatever its name."""

    root: Path
    events: list[FileEvent] = field(default_factory=list)
    folders: set[int] = field(default_factory=lambda: {ROOT})
    _nodes: dict[int, int] = field(default_factory=dict)  # by inode number
    _entries: dict[EntryPlace, int] = field(default_factory=dict)
    _contents: dict[int, bytes] = field(default_factory=dict)
    _count: int = ROOT

    def promise(self, what: str) -> None:
        self.compare()
        self.events.append(Promise(what))

    def compare(self) -> None:
        """Note what has changed since the last time."""
        nodes, entries, contents = {os.stat(self.root).st_ino: ROOT}, {}, {}  # noqa: PTH116 (os is watched)
        found = [(ROOT, os.fspath(self.root))]
        for folder, path in found:
            with os.scandir(path) as listing:
                for each in sorted(listing, key=lambda each: each.name):
                    inode = each.inode()
                    if inode not in nodes:
                        nodes[inode] = self._nodes.get(inode) or self._new_node()
                    node = entries[folder, each.name] = nodes[inode]
                    if each.is_dir(follow_symlinks=False):
                        self.folders.add(node)
                        found.append((node, each.path))
                    else:
                        with open(each.path, "rb") as file:  # noqa: PTH123
                            contents[node] = file.read()
        for node, content in contents.items():
            if self._contents.get(node) != content:
                self.events.append(Write(node, content))
        changed = {place: entries.get(place) for place in {**self._entries, **entries}}
        changed = {place: node for place, node in changed.items() if self._entries.get(place) != node}
        if changed:
            self.events.append(Entries(changed))
        self._nodes, self._entries, self._contents = nodes, entries, contents

    def flush(self, handle: int) -> None:
        self.compare()
        node = self._nodes.get(os.fstat(handle).st_ino)
        if node is not None:
            self.events.append(Flush(node))

    def _new_node(self) -> int:
        self._count += 1
        return self._count


@contextmanager
def recording(root: Path) -> Iterator[FileLog]:
    """Record what this process does in a folder whose contents, if any, are assumed to be flushed."""
    record = FileLog(root)
    real = {name: getattr(os, name) for name in ("fsync", *OPERATIONS)}
    record.compare()
    record.events += [Flush(node) for node in {*record.folders, *record._contents}]

    def watched(name: str) -> Any:
        def operation(*given: Any, **named: Any) -> Any:
            record.compare()
            try:
                return real[name](*given, **named)
            finally:
                record.compare()

        return operation

    try:
        for name in OPERATIONS:
            setattr(os, name, watched(name))
        setattr(os, "fsync", record.flush)  # noqa: B010 (mypy wants the name of the argument)
        yield record
    finally:
        for name, function in real.items():
            setattr(os, name, function)
    record.compare()


def promises(record: FileLog, at: int | None = None) -> list[str]:
    """What the program had promised after `at` of its events."""
    return [event.what for event in record.events[:at] if isinstance(event, Promise)]


def write_remains(record: FileLog, at: int, rng: random.Random, to: Path) -> None:
    """Write what a power loss after `at` events may leave."""
    flushed: dict[int, bytes] = {}
    current: dict[int, bytes] = {}
    changes: list[Entries] = []
    safe: set[int] = set()  # which changes are flushed
    for event in record.events[:at]:
        if isinstance(event, Write):
            current[event.node] = event.content
        elif isinstance(event, Entries):
            changes.append(event)
        elif isinstance(event, Flush) and event.node in record.folders:
            safe |= {
                i for i, each in enumerate(changes) if event.node in {place[0] for place in each.changed}
            }
        elif isinstance(event, Flush):
            flushed[event.node] = current[event.node]
    share = rng.choice((0.0, 0.5, 0.9, 1.0))
    until = rng.randint(0, len(changes)) if rng.random() < 0.3 else None  # as with a journal: in order
    entries: dict[EntryPlace, int | None] = {}
    for i, change in enumerate(changes):
        if i in safe or (rng.random() < share if until is None else i < until):
            entries.update(change.changed)
    _write_folder(
        ROOT, to, entries, {node: _remains(node, flushed, current, rng) for node in current}, record.folders
    )


def _remains(node: int, flushed: dict[int, bytes], current: dict[int, bytes], rng: random.Random) -> bytes:
    """What is left of a file: everything that was flushed, and any part of the rest."""
    old, new = flushed.get(node, b""), current[node]
    if old == new:
        return new
    kept = rng.randint(0, len(new))
    if new.startswith(old):  # it grew: earlier blocks are not written again
        kept = rng.randint(len(old), len(new))
    torn, zeros = new[:kept], new[:kept] + bytes(len(new) - kept)
    return rng.choice((old, new, torn, zeros))


def _write_folder(
    node: int,
    path: Path,
    entries: dict[EntryPlace, int | None],
    contents: dict[int, bytes],
    folders: set[int],
) -> None:
    path.mkdir()
    for (folder, name), child in entries.items():
        if folder != node or child is None:
            continue
        if child in folders:
            _write_folder(child, path / name, entries, contents, folders)
        else:
            (path / name).write_bytes(contents[child])
