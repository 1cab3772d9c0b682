"""Models that come with the package, in the folder `builtin/`: each is a training run with a few snapshots.

Does not import torch, which takes seconds to load.
"""

from __future__ import annotations

from pathlib import Path

BUILTIN = Path(__file__).parents[1] / "builtin"
NAMES = ("stories",)  # trained by tools/train_stories.py
LICENSE = "Apache-2.0"


def place(name: str) -> Path:
    """The path of this model in the package."""
    return BUILTIN / name


def find(name: str) -> Path | None:
    """The folder of a built-in model by name, if there is one."""
    return place(name) if name in NAMES and (place(name) / "config.json").is_file() else None


def name_of(path: Path) -> str | None:
    """The name of a built-in model by its folder; None for any other folder."""
    return next((name for name in NAMES if path.absolute() == place(name)), None)
