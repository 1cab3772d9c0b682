"""Find and open a model: a folder, an adapter, a file, the name of a built-in or pulled model, or a hub name."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import UserError, guess
from clearhead.files import open_regular, read_json
from clearhead.formats import builtin, folder, hub, peft, pulled, recognition
from clearhead.formats.file_formats import find_format, is_gguf
from clearhead.formats.places import RUNS, name_models
from clearhead.formats.saved import Saved
from clearhead.formats.shards import INDEX, WEIGHTS, Shards
from clearhead.text.tokenizer import Tokenizer

SNAPSHOTS = "snapshots"  # a subfolder of a run
RUN_FILE = "run.json"  # in the folder of a run
SNAPSHOT = "@"  # separates a run's name from a step; no other name contains it


def open_model(name: str | Path, dtype: torch.dtype = torch.float32, base: str | Path | None = None) -> Saved:
    """Load the model with this name. Raises UserError if there is none, or it is invalid.

    If it is an adapter, `base` is the model to apply it to; by default, the one that its settings name.
    """
    path = find_model(name)
    if peft.is_adapter(path):
        return _open_adapted(path, dtype, base)
    if base is not None:
        raise UserError(
            f"base = {str(base)!r}: {name} is not an adapter, so it has no base model; omit `base`"
        )
    if path.is_dir():
        saved = folder.load(path, dtype)
        return saved if saved.training is not None else replace(saved, training=_recipe_of_run(path))
    if (found := find_format(path)) is not None:
        return found.load(path, dtype)
    from clearhead.formats.gguf import model as gguf_model  # import gguf only when needed

    pulled.check(path)
    return gguf_model.load(path, dtype)


def _open_adapted(path: Path, dtype: torch.dtype, base: str | Path | None) -> Saved:
    """The base model of an adapter, with the adapter merged into it."""
    adapter, place = peft.read_adapter(path), find_base(path, base)
    if place.is_dir():
        saved = folder.load(place, dtype, adapter.apply)
    else:
        from clearhead.formats.gguf import model as gguf_model

        pulled.check(place)
        saved = gguf_model.load(place, dtype, adapter.apply)
    tokenizer = saved.tokenizer
    if (path / "tokenizer.json").exists():
        tokenizer = Tokenizer.load(path, tokenizer.end_ids)
        if tokenizer.n_vocab > saved.network.config.n_vocab:
            raise UserError(
                f"{path}: its tokenizer has {tokenizer.n_vocab} tokens, but its base model has only "
                f"{saved.network.config.n_vocab}; adapters that add tokens are not supported"
            )
    return Saved(saved.network, tokenizer, None)


def find_base(path: Path, base: str | Path | None = None) -> Path:
    """The path of an adapter's base model: the given one, or the one that its settings name."""
    named = peft.read_adapter(path).base if base is None else base
    if named is None:
        raise UserError(f"{path} is an adapter that does not name its base model: name it with `base`")
    try:
        place = find_model(named)
    except UserError as error:
        if base is not None:
            raise
        raise UserError(
            f"{path} is an adapter for the model {named!r}, which cannot be opened ({error}); name its base model with "
            "`base`, or merge it first: clearhead export ADAPTER FOLDER --base MODEL"
        ) from None
    if peft.is_adapter(place) or (place.is_file() and find_format(place) is not None):
        raise UserError(f"{place} cannot be the base of an adapter: expected a model folder or a GGUF file")
    return place


def hash_weights(name: str | Path) -> str:
    """The sha256 of the files with a model's weights, which identifies the model wherever it is stored."""
    path = find_model(name)
    if peft.is_adapter(path):
        parts = [Shards(path, peft.WEIGHTS).paths[0], *_weights_of(find_base(path))]
        return _hash_files(parts)
    return _hash_files(_weights_of(path))


def _weights_of(path: Path) -> list[Path]:
    return Shards(path).paths if path.is_dir() else [path]


def _hash_files(paths: list[Path]) -> str:
    try:
        hashes = []
        for each in paths:
            with open_regular(each) as file:
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
        return _as_file(path)
    if (own := builtin.find(text)) is not None:
        return own
    if text in pulled.CATALOG:
        found = pulled.find(text)
        if found is None:
            raise UserError(f"{text} has not been pulled yet: clearhead pull {text}")
        return found
    # A missing folder such as runs/my is not looked up on the hub.
    if hub.is_name(text) and not Path(path.parts[0]).exists() and path.parts[0] != RUNS:
        return _in_folder(hub.fetch(text))
    known = ", ".join(pulled.CATALOG)
    meant = guess(text.lower(), [*pulled.CATALOG, *name_models()])
    raise UserError(
        f"no such folder or file: {path}; name a folder that `clearhead train` or transformers saved, "
        f"a GGUF file, the built-in model ({', '.join(builtin.NAMES)}), or one that can be pulled ({known}){meant}"
    )


def is_model(name: str | Path) -> bool:
    """Whether this names a model on this machine rather than a text, decided without opening it."""
    path, text = Path(name).expanduser(), str(name)
    if os.path.isdir(path):  # noqa: PTH112
        files = (folder.CONFIG, RUN_FILE, peft.SETTINGS)
        return any((path / name).exists() for name in files) or any(path.glob("*.gguf"))
    if os.path.exists(path):  # noqa: PTH110
        return is_gguf(path) or find_format(path) is not None or path.suffix == ".safetensors"
    return builtin.find(text) is not None or text in pulled.CATALOG


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
    if (path / folder.CONFIG).exists() or (path / peft.SETTINGS).exists():
        return path
    files = sorted(path.glob("*.gguf"))
    if len(files) > 1:
        raise UserError(f"{path} contains {len(files)} GGUF files: name one, such as {files[0]}")
    return files[0] if files else path


def _as_file(path: Path) -> Path:
    """The file itself; or its folder, if it is the weights of a model folder or of an adapter."""
    whole = {WEIGHTS: folder.CONFIG, peft.WEIGHTS: peft.SETTINGS}
    if path.name in whole and (path.parent / whole[path.name]).exists():
        return path.parent
    shard = re.fullmatch(r"model-\d{5}-of-\d{5}\.safetensors", path.name)
    if shard and (path.parent / INDEX).exists() and (path.parent / folder.CONFIG).exists():
        return path.parent
    if is_gguf(path) or find_format(path) is not None:
        return path
    raise UserError(f"{path} {recognition.describe_file(path)}")


def _recipe_of_run(path: Path) -> dict[str, Any] | None:
    """The recipe of the run that a snapshot belongs to; None for any other folder."""
    if path.parent.name != SNAPSHOTS:
        return None
    try:
        recipe = read_json(path.parents[1] / RUN_FILE)["plan"]["recipe"]
    except (UserError, KeyError, TypeError):
        return None
    return {"recipe": recipe} if isinstance(recipe, dict) else None
