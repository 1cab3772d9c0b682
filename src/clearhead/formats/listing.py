"""The models on this disk and their properties, without reading the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from clearhead.errors import UserError
from clearhead.formats import builtin, peft
from clearhead.formats.file_formats import find_format
from clearhead.formats.folder import CONFIG, read_label
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.model import read_config
from clearhead.formats.opening import find_base
from clearhead.formats.pulled import CATALOG, find
from clearhead.formats.shards import WEIGHTS
from clearhead.networks import SingleConfig

Origin = Literal[
    "run", "pulled", "built-in", "file"
]  # trained here, pulled, part of the package, or from elsewhere


@dataclass(frozen=True)
class Listed:
    """A model, and the name by which it can be loaded."""

    name: str  # its folder, its file, or its pulled or built-in name
    path: Path
    origin: Origin
    family: str
    config: SingleConfig
    bytes: int | None
    validation_loss: float | None = None
    license: str | None = None

    @property
    def made(self) -> float:
        """Modification time in seconds; a built-in model is older than all others."""
        if self.origin == "built-in":
            return 0.0
        try:
            return self.path.stat().st_mtime
        except OSError:
            return 0.0


def list_models(places: Sequence[Path], on_skip: Callable[[str], object] = lambda _: None) -> list[Listed]:
    """The models in these places; `on_skip` receives the reason for each model that is skipped."""
    return [found for place in places for found in [*_folders(place, on_skip), *_ggufs(place, on_skip)]]


def describe(path: Path) -> Listed:
    """Describe a model given by its folder or file. An adapter is described as its base model."""
    if peft.is_adapter(path):
        return replace(describe(find_base(path)), name=str(path), path=path, origin="file")
    if path.is_dir():
        return _describe_folder(path)
    if (found := find_format(path)) is not None:
        return Listed(str(path), path, "file", found.name, found.read_config(path), _size(path))
    return _describe_gguf(path)


def _folders(place: Path, on_skip: Callable[[str], object]) -> Iterator[Listed]:
    """The folder itself, if it is a model, and the models in it."""
    for folder in [place, *sorted(place.glob("*"))]:
        if not (folder / CONFIG).is_file():
            continue
        try:
            yield _describe_folder(folder)
        except UserError as error:
            on_skip(f"skipped: {error}")


def _describe_folder(folder: Path) -> Listed:
    """Describe the model in a folder; built-in models are listed by name."""
    label, own = read_label(folder), builtin.name_of(folder)
    return Listed(
        name=own or str(folder),
        path=folder,
        origin="built-in" if own else "file" if label.training is None else "run",
        family=label.family.model_type,
        config=label.config,
        bytes=_size(folder / WEIGHTS),
        validation_loss=(label.training or {}).get("validation_loss"),
        license=builtin.LICENSE if own else None,
    )


def _ggufs(place: Path, on_skip: Callable[[str], object]) -> Iterator[Listed]:
    """The GGUF files in the folder and in its subfolders."""
    for path in sorted([*place.glob("*.gguf"), *place.glob("*/*.gguf")]):
        try:
            yield _describe_gguf(path)
        except UserError as error:
            on_skip(f"skipped: {error}")


def _describe_gguf(path: Path) -> Listed:
    """Describe the model in a GGUF file; pulled models are listed by name."""
    pulled = next((model for model in CATALOG.values() if find(model.name) == path), None)
    with GGUFFile.open(path) as file:
        family, config = read_config(file)
    license_name = file.metadata.get("general.license")
    return Listed(
        name=pulled.name if pulled else str(path),
        path=path,
        origin="pulled" if pulled else "file",
        family=family,
        config=config,
        bytes=_size(path),
        license=pulled.license if pulled else license_name if isinstance(license_name, str) else None,
    )


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
