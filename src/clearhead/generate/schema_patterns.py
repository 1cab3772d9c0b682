"""A limit on patterns that a JSON schema combines: the time to compile their intersection grows exponentially."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.errors import UserError

MOST_COMBINED = 8  # patterns; eight take up to a tenth of a second, and twelve, seven seconds
# What may stand beside a reference or an `allOf` without being combined with it.
NOTES = {"$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description"}
NOTES |= {"examples", "readOnly", "title", "writeOnly", "x-guidance"}


def check_patterns(schema: Mapping[str, Any]) -> None:
    """Raise an error if a schema that combines schemas has more patterns than can be combined."""
    patterns: set[str] = set()
    combines, left = False, [schema]
    while left:
        each: Any = left.pop()
        if isinstance(each, Mapping):
            combines = combines or _combines(each)
            patterns |= {str(each[key]) for key in ("pattern", "format") if isinstance(each.get(key), str)}
            if isinstance(found := each.get("patternProperties"), Mapping):
                patterns |= found.keys()
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each
    if combines and len(patterns) > MOST_COMBINED:
        raise UserError(
            f"the JSON schema combines schemas (by allOf, or beside $ref) and has {len(patterns)} patterns, expected "
            f"at most {MOST_COMBINED}: simplify it"
        )


def _combines(schema: Mapping[str, Any]) -> bool:
    """Whether a text must match several schemas."""
    parts = schema.get("allOf")
    n = len(parts) if isinstance(parts, list) else 0
    n += "$ref" in schema
    return n > 1 or (n == 1 and bool(schema.keys() - NOTES - {"allOf", "$ref"}))
