"""Values for JSON, which has no NaN or infinity."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """Replace non-finite floats with None, in nested dicts and lists too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
