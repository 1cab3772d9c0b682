"""Find and open a model: a folder, a GGUF or ARPA file, the name of a built-in or pulled model, or a hub name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import UserError, guess
from clearhead.formats import arpa, builtin, folder, hub, pulled
from clearhead.formats.places import RUNS, name_models
from clearhead.formats.saved import Saved
from clearhead.formats.shards import Shards

MAGIC = b"GGUF"
SNAPSHOTS = "snapshots"  # a subfolder of a run
RUN_FILE = "run.json"  # in the folder of a run
SNAPSHOT = "@"  # separates a run's name from a step; no other name contains it


def open_model(name: str | Path, dtype: torch.dtype = torch.float32) -> Saved:
    """Load the model with this name. Raises UserError if there is none, or it is invalid."""
    path = find_model(name)
    if path.is_dir():
        saved = folder.load(path, dtype)
        return saved if saved.training is not None else replace(saved, training=_recipe_of_run(path))
    if arpa.is_arpa(path):
        return arpa.load(path)
    from clearhead.formats.gguf import model as gguf_model  # import gguf only when needed

    return gguf_model.load(path, dtype)


def hash_weights(name: str | Path) -> str:
    """The sha256 of the files with a model's weights, which identifies the model wherever it is stored."""
    path = find_model(name)
    paths = Shards(path).paths if path.is_dir() else [path]
    try:
        hashes = []
        for each in paths:
            with each.open("rb") as file:
                hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise UserError(f"{each} cannot be read: {error.strerror}") from None
    return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def find_model(name: str | Path) -> Path:
    """The path of a model, which is a folder or a file; a model on the hub is fetched."""
    if not isinstance(name, str | Path):
        raise UserError(
            f"{name!r} is not the name of a model: expected a folder, a GGUF file or a name, as a str"
        )
    path, text = Path(name).expanduser(), str(name)
    if os.path.isdir(path):  # noqa: PTH112 (Path.is_dir raises for a name that is too long)
        return _in_folder(path)
    if os.path.exists(path):  # noqa: PTH110
        if not arpa.is_arpa(path) and not _is_gguf(path):
            raise UserError(f"{path} is not a GGUF or ARPA file: name one, or a model folder")
        return path
    if (own := builtin.find(text)) is not None:
        return own
    if text in pulled.CATALOG:
        found = pulled.find(text)
        if found is None:
            raise UserError(f"{text} has not been pulled yet: clearhead pull {text}")
        return found
    # A missing folder such as runs/my is not looked up on the hub.
    if hub.is_name(text) and not path.parent.exists() and path.parts[0] != RUNS:
        return hub.fetch(text)
    known = ", ".join(pulled.CATALOG)
    meant = guess(text.lower(), [*pulled.CATALOG, *name_models()])
    raise UserError(
        f"no such folder or file: {path}; name a folder that `clearhead train` or transformers saved, "
        f"a GGUF file, the built-in model ({', '.join(builtin.NAMES)}), or one that can be pulled ({known}){meant}"
    )


def name_of(source: str | Path, step: int | None = None) -> str:
    """A short name for a model: the last part of its path, in plain characters."""
    path = Path(source)
    stem = path.name.removesuffix(".gguf") or path.resolve().name
    name = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII).strip(".-") or "model"
    return name if step is None else f"{name}{SNAPSHOT}{step}"


def find_run(name: str | Path) -> Path:
    """The folder of a run, given its path or the name of a built-in model, which is also a run."""
    own = None if os.path.isdir(name) else builtin.find(str(name))  # noqa: PTH112
    return own or Path(name)


def list_snapshots(run: Path) -> list[int]:
    """The steps of a run's snapshots."""
    names = (path.name.removeprefix("step-") for path in (run / SNAPSHOTS).glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())


def find_snapshot(run: Path, step: int) -> Path:
    """The folder of a run's snapshot at a step."""
    steps = list_snapshots(run)
    if type(step) is not int:
        raise UserError(f"step = {step!r}: expected an integer, such as 100")
    if step not in steps:
        known = (
            f"expected one of {', '.join(map(str, steps))}" if steps else "it was trained without snapshots"
        )
        raise UserError(f"{run} has no snapshot of step {step}: {known}")
    return snapshot_folder(run, step)


def snapshot_folder(run: Path, step: int) -> Path:
    return run / SNAPSHOTS / f"step-{step:09d}"


def _in_folder(path: Path) -> Path:
    """The folder itself; or, if it is not a model but contains one GGUF file, that file."""
    files = [] if (path / folder.CONFIG).exists() else sorted(path.glob("*.gguf"))
    if len(files) > 1:
        raise UserError(f"{path} contains {len(files)} GGUF files: name one, such as {files[0]}")
    return files[0] if files else path


def _recipe_of_run(path: Path) -> dict[str, Any] | None:
    """The recipe of the run that a snapshot belongs to; None for any other folder."""
    if path.parent.name != SNAPSHOTS:
        return None
    try:
        recipe = json.loads((path.parents[1] / RUN_FILE).read_bytes())["plan"]["recipe"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return {"recipe": recipe} if isinstance(recipe, dict) else None


def _is_gguf(path: Path) -> bool:
    if path.suffix == ".gguf" or not path.is_file():
        return True  # the reader reports any error
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
