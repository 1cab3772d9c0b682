"""JSON schemas whose objects have only the properties that they list, unless they say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Keywords with which a schema may allow or require properties that it does not list.
COMBINING = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"}
OPEN = COMBINING | {"additionalProperties", "minProperties"}
# Keywords with which a value must match several schemas at once, apart from those that `_count_parts` counts.
INTERSECTING = {"$dynamicRef", "if", "dependentSchemas", "unevaluatedProperties"}
ALTERNATIVES = ("anyOf", "oneOf")


def close_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, with unlisted properties forbidden at every level, unless it has `additionalProperties` there.

    JSON Schema allows any others, but a model could write such properties until its tokens run out.
    """
    closed: dict[str, Any] = _close(dict(schema), not _intersects(schema))
    return closed


def _close(schema: Any, definitions: bool) -> Any:
    """`definitions` says whether to close the schemas that others refer to."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    groups = ("properties", *(("$defs", "definitions") if definitions else ()))
    for name in groups:
        if isinstance(schema.get(name), dict):
            closed[name] = {key: _close(each, definitions) for key, each in schema[name].items()}
    lists = ("prefixItems", *((*ALTERNATIVES, "allOf") if _count_parts(schema) == 1 else ()))
    for name in lists:
        if isinstance(schema.get(name), list):
            closed[name] = [_close(each, definitions) for each in schema[name]]
    for name in ("items", "additionalProperties"):
        if name in schema:
            closed[name] = _close(schema[name], definitions)
    if isinstance(closed.get("properties"), dict) and not OPEN & schema.keys():
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str):
                closed["properties"].setdefault(name, {})
        closed["additionalProperties"] = False
    return closed


def _intersects(schema: Any) -> bool:
    """Whether a value may have to match two of its schemas at once, neither of which lists all properties."""
    if isinstance(schema, list):
        return any(map(_intersects, schema))
    if not isinstance(schema, dict):
        return False
    return (
        _count_parts(schema) > 1
        or bool(INTERSECTING & schema.keys())
        or any(map(_intersects, schema.values()))
    )


def _count_parts(schema: Mapping[str, Any]) -> int:
    """The number of schemas that an object must match at once."""
    every = schema.get("allOf")
    return sum(name in schema for name in ("properties", "$ref", *ALTERNATIVES)) + (
        len(every) if isinstance(every, list) else 0
    )
