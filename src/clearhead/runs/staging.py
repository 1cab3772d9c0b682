"""A folder put whole in the place of another: at every moment the old one or the new one can be had.

The new one is made beside as `.name.new`. The old one is moved aside as `.name.old`, the new one takes its
place, the old one goes. A process killed in between leaves one of these behind; `recover` sets that right.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from clearhead.files import settle_folder

_BESIDE = re.compile(r"\.(?P<name>.+)\.(?:new|old)")
_HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{8}")  # what `write_whole` calls a file until it is


def begin(folder: Path) -> Path:
    """Where the new one is to be made; not there yet."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    return staged


def put_in_place(folder: Path) -> None:
    """What was made where `begin` said takes the folder's name."""
    staged, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    settle_folder(staged)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    staged.rename(folder)
    settle_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(parent: Path) -> None:
    """Put back what was moved aside and not replaced, and clear away what was half made."""
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
    """Delete a folder so that no half of it is ever there under its name."""
    if os.path.lexists(folder):
        aside = begin(folder)
        folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
