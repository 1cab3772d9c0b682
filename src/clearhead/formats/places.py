"""Where models are stored, and how they are named. Does not import torch, which takes seconds to load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clearhead import files
from clearhead.formats.builtin import BUILTIN, NAMES
from clearhead.formats.pulled import CATALOG, find

RUNS = "runs"  # in the working folder


def usual_places() -> list[Path]:
    """The places for the user's own models."""
    return [Path(RUNS), files.home() / "models"]


def all_places() -> list[Path]:
    """The usual places, and that of the built-in models."""
    return [*usual_places(), BUILTIN]


def name_models() -> Iterator[str]:
    """The names of possible models in the usual places: folders, GGUF files, pulled and built-in names. Opens
    none of them.
    """
    pulled = {path: name for name in CATALOG if (path := find(name)) is not None}
    for place in usual_places():
        for folder in sorted(place.glob("*")):
            if (folder / "config.json").is_file():
                yield str(folder)
        for path in sorted([*place.glob("*.gguf"), *place.glob("*/*.gguf")]):
            yield pulled.get(path, str(path))
    yield from NAMES
