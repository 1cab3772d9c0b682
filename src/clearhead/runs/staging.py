"""Crash-safe replacement of folders: at every moment, the old or the new one is complete.

The new folder is written beside the old one as `.name.new`, the old one is moved to `.name.old`, the new one is
renamed, and the old one is deleted. A process killed in between leaves them behind; `recover` cleans up.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from clearhead.files import make_folder, settle_folder

_BESIDE = re.compile(r"\.(?P<name>.+)\.(?:new|old)")
_HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{8}")  # the temporary names that `write_whole` uses


def begin(folder: Path) -> Path:
    """The path at which to write the new folder."""
    make_folder(folder.parent)
    staged = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    return staged


def put_in_place(folder: Path) -> None:
    """Rename the folder written at `begin`'s path."""
    staged, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    settle_folder(staged)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    staged.rename(folder)
    settle_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(parent: Path) -> None:
    """Restore a folder that was moved aside and not replaced, and delete incomplete ones."""
    for path in sorted(parent.iterdir()) if parent.is_dir() else []:
        found = _BESIDE.fullmatch(path.name)
        if found and path.is_dir():
            if path.suffix == ".old" and not (parent / found["name"]).exists():
                path.rename(parent / found["name"])
            else:
                shutil.rmtree(path, ignore_errors=True)
        elif _HALF_WRITTEN.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def drop(folder: Path) -> None:
    """Delete a folder atomically."""
    if os.path.lexists(folder):
        aside = begin(folder)
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
