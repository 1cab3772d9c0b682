"""Optional packages: the extra that installs each one, what needs it, and the error when it is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from clearhead.errors import UserError


@dataclass(frozen=True)
class Extra:
    """An extra of Clearhead, and the main package that it installs."""

    module: str  # as imported
    package: str  # as pip names it
    purpose: str


EXTRAS = {
    "documents": Extra("inscriptis", "inscriptis", "texts in .html, .epub, .docx and .pdf files"),
    "figures": Extra("matplotlib", "matplotlib", "ch.figure, --figure and a run's loss.svg"),
    "probes": Extra("sklearn", "scikit-learn", "ch.probe and the pronoun lab"),
    "notebook": Extra("anywidget", "anywidget", "ch.show in notebooks"),
    "numba": Extra("numba", "numba", "clearhead words, the neighbors lab and --quantize int8"),
    "tensorboard": Extra("tensorboard", "tensorboard", "clearhead train --tensorboard"),
    "wandb": Extra("wandb", "wandb", "clearhead train --wandb PROJECT"),
}


def is_installed(extra: str) -> bool:
    return importlib.util.find_spec(EXTRAS[extra].module) is not None


def require(extra: str, feature: str) -> None:
    """Raise a UserError that names the extra unless its package is installed."""
    if not is_installed(extra):
        package, install = EXTRAS[extra].package, f"pip install 'clearhead[{extra}]'"
        raise UserError(
            f"{feature} needs {package}, which is not installed: {install}",
            "missing_package",
            package=package,
            install=install,
        )
