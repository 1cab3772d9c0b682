"""Where models are stored, and their names: without torch, which takes seconds to import."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clearhead import files
from clearhead.formats.pulled import CATALOG, find

RUNS = "runs"  # in the working folder


def usual_places() -> list[Path]:
    return [Path(RUNS), files.home() / "models"]


def name_models() -> Iterator[str]:
    """The names of possible models in the usual places: folders, GGUF files, pulled names. None is opened."""
    pulled = {path: name for name in CATALOG if (path := find(name)) is not None}
    for place in usual_places():
        for folder in sorted(place.glob("*")):
            if (folder / "config.json").is_file():
                yield str(folder)
        for path in sorted([*place.glob("*.gguf"), *place.glob("*/*.gguf")]):
            yield pulled.get(path, str(path))
