"""Tensors of a folder's safetensors: one file, or several with an index that says what is where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import read_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
FLOATS = ("F64", "F32", "F16", "BF16")


class Shards:
    """The tensors of a folder by name. Each is read from its own file when asked for."""

    def __init__(self, folder: Path) -> None:
        self.paths = _find_files(folder)
        self.described = str(self.paths[0] if len(self.paths) == 1 else folder / INDEX)
        self._file_of: dict[str, Path] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for path in self.paths:
            self._note(path)

    @property
    def n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        path = self._file_of[name]
        try:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(name).to(dtype)
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from None

    def _note(self, path: Path) -> None:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (it is no mapping)
                    part = file.get_slice(name)
                    if name in self._file_of:
                        raise UserError(f"{path} has {name}, which {self._file_of[name].name} has as well")
                    if part.get_dtype() in FLOATS:
                        self._shapes[name] = tuple(part.get_shape())
                        self._file_of[name] = path
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from None


def inside(folder: Path, name: str) -> Path:
    """A file of the folder by its plain name. What lies elsewhere, by a path or by a link, is refused."""
    if Path(name).name != name or name in ("", ".", ".."):
        raise UserError(f"{folder} names the file {name!r}: expected a plain name of a file in it")
    path, home = folder / name, folder.resolve()
    allowed = {home}
    if home.parent.name == "snapshots":  # the hub's own cache keeps files beside, under their hashes
        allowed.add(home.parent.parent / "blobs")
    try:
        if path.is_symlink() and path.resolve().parent not in allowed:
            raise UserError(f"{path} is a link out of its folder: copy the file itself there")
    except (OSError, RuntimeError):
        raise UserError(f"{path} is a link that leads nowhere: copy the file itself there") from None
    return path


def _find_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).exists() or (folder / WEIGHTS).is_symlink():
        paths = [inside(folder, WEIGHTS)]
    elif (folder / INDEX).exists():
        index = read_json(inside(folder, INDEX)).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
            raise UserError(f"{folder / INDEX} has no weight_map of names and files; copy it again")
        files = sorted(set(index.values()))
        if not files or not all(file.endswith(".safetensors") for file in files):
            raise UserError(f"{folder / INDEX} names files that are no safetensors; copy it again")
        paths = [inside(folder, file) for file in files]
    else:
        _refuse_pickles(folder)
        raise UserError(f"no such file: {folder / WEIGHTS}; is {folder} a whole model?")
    for path in paths:
        if not path.is_file():
            raise UserError(f"no such file: {path}; is {folder} a whole model?")
    return paths


def _refuse_pickles(folder: Path) -> None:
    for pattern in PICKLES:
        for path in folder.glob(pattern):
            raise UserError(
                f"{path} is a pickle, which can run any code when it is opened, and is not read here; "
                "where you trust it, convert it: transformers' AutoModelForCausalLM.from_pretrained(FOLDER)"
                ".save_pretrained(OTHER) writes safetensors"
            )


def _damaged(path: Path, error: Exception) -> UserError:
    if isinstance(error, OSError):
        return UserError(f"{path} cannot be read: {error.strerror or error}")
    return UserError(f"{path} is damaged ({error}); copy it again from where it came")
