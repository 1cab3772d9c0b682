"""The tensors of a folder's safetensors: one file, or several with an index."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import describe_placeholder, inside, open_regular, read_all, read_json, write_whole

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
FLOATS = ("F64", "F32", "F16", "BF16")
# Limits, so that a file cannot exhaust memory or time; a thousand blocks need about 2 MB of header.
PLACEHOLDER = 64  # bytes that distinguish the file from the remains of a failed download
LARGEST_HEADER = 2**22
MOST_FILES = 1000


class Shards:
    """The tensors of a folder by name, each read from its file on request."""

    def __init__(self, folder: Path, weights: str = WEIGHTS) -> None:
        self.paths = _find_files(folder, weights)
        self.described = str(self.paths[0] if len(self.paths) == 1 else folder / INDEX)
        self._file_of: dict[str, Path] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.odd: dict[str, str] = {}  # tensors that are not floats, and their types
        self.integers: dict[str, tuple[int, ...]] = {}  # of those, the 64-bit integers
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
        except (SafetensorError, OSError, MemoryError, RuntimeError) as error:
            raise _damaged(path, error) from None

    def _note(self, path: Path) -> None:
        _check_header(path)
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (it is not a mapping)
                    part = file.get_slice(name)
                    if name in self._file_of:
                        raise UserError(
                            f"{path} contains {name}, which is also in {self._file_of[name].name}"
                        )
                    self._file_of[name] = path
                    if part.get_dtype() in FLOATS:
                        self._shapes[name] = tuple(part.get_shape())
                        continue
                    self.odd[name] = part.get_dtype()
                    if part.get_dtype() == "I64":
                        self.integers[name] = tuple(part.get_shape())
        except (SafetensorError, OSError, MemoryError, RuntimeError) as error:
            raise _damaged(path, error) from None


def _find_files(folder: Path, weights: str) -> list[Path]:
    if (folder / weights).exists() or (folder / weights).is_symlink():
        paths = [inside(folder, weights)]
    elif (folder / INDEX).exists():
        index = read_json(inside(folder, INDEX)).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
            raise UserError(f"{folder / INDEX} has no weight_map from names to files; copy it again")
        files = sorted(set(index.values()))
        if not files or not all(file.endswith(".safetensors") for file in files):
            raise UserError(f"{folder / INDEX} names files that are not safetensors; copy it again")
        if len(files) > MOST_FILES:
            raise UserError(f"{folder / INDEX} names {len(files)} files, expected at most {MOST_FILES}")
        paths = [inside(folder, file) for file in files]
    else:
        _refuse_pickles(folder)
        raise UserError(f"no such file: {folder / WEIGHTS}; is {folder} a complete model?")
    for path in paths:
        if not path.is_file():
            raise UserError(f"no such file: {path}; is {folder} a complete model?")
    return paths


def _check_header(path: Path) -> None:
    """Reject what the library would accept: an oversized header, or a duplicate name."""
    try:
        with open_regular(path) as file:
            if (what := describe_placeholder(read_all(file, PLACEHOLDER))) is not None:
                raise UserError(f"{path} {what}")
            file.seek(0)
            start = read_all(file, 8)
            n = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if n > LARGEST_HEADER:
                raise UserError(
                    f"{path} is damaged (a header of {n} bytes, expected at most {LARGEST_HEADER}); "
                    "copy it again from its source"
                )
            json.loads(read_all(file, n), object_pairs_hook=_once)
    except OSError as error:
        raise _damaged(path, error) from None
    except RecursionError:
        raise _damaged(path, ValueError("a header nested too deeply")) from None
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise _damaged(path, error) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:80]!r} occurs twice")
        found[name] = value
    return found


def _refuse_pickles(folder: Path) -> None:
    for pattern in PICKLES:
        for path in folder.glob(pattern):
            raise UserError(
                f"{path} is a pickle, which can run arbitrary code when opened, and is not read here; "
                "if you trust it, convert it: transformers' AutoModelForCausalLM.from_pretrained(FOLDER)"
                ".save_pretrained(OTHER) writes safetensors"
            )


def _damaged(path: Path, error: Exception) -> UserError:
    if isinstance(error, OSError):
        return UserError(f"{path} cannot be read: {error.strerror or error}")
    if isinstance(error, MemoryError | RuntimeError):  # it could not be memory-mapped
        return UserError(
            f"{path} cannot be read: it needs more memory than is available; use a smaller model"
        )
    if any("\ud800" <= character <= "\udfff" for character in str(path)):  # bytes that are not UTF-8
        return UserError(f"{path} cannot be read: its path is not valid UTF-8; rename the folder or file")
    return UserError(f"{path} is damaged ({error}); copy it again from its source")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> None:
    """Write one file, atomically."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def write(temporary: Path) -> None:
        try:
            save_file(ready, temporary, metadata=about)
        except SafetensorError as error:
            # safetensors reports a full disk only as text; an ordinary write raises an error with an errno.
            with temporary.open("ab") as file:
                file.write(b"\0" * 2**20)
            raise OSError(None, str(error)) from None

    write_whole(path, write)
