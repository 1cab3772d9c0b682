"""Numbers as JSON has them: what is not finite is null."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same number, or a dict or list of them however deep, with None for each that JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
