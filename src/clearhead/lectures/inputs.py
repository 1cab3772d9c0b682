"""The initial inputs of the stops' figures, from the file that the page is built with."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _read() -> dict[str, dict[str, Any]]:
    inputs: dict[str, dict[str, Any]] = json.loads(
        (files("clearhead.lectures") / "inputs.json").read_text(encoding="utf-8")
    )
    return inputs


def inputs_of(stop: str) -> dict[str, Any]:
    """The inputs of a stop such as 000.8, by name."""
    return _read()[stop]
