"""Objects have only the properties that their schema lists, unless it says otherwise."""

import json

import pytest

from clearhead.generate.closed_schema import close_schema
from clearhead.generate.constraint import Grammar
from clearhead.text.tokenizer import Tokenizer

BYTES = Tokenizer.train("byte", [])
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
OTHER = {"type": "object", "properties": {"y": {"type": "integer"}}}
REFERENCE = {"$ref": "#/$defs/P"}
DEFINED = {"$defs": {"P": POINT}}


def allows(schema, value):
    """Whether a model can write this value."""
    constraint = Grammar(BYTES, BYTES.n_vocab, json_schema=schema).begin()
    for token in [*BYTES.encode(json.dumps(value)), 256]:
        if not constraint.allowed()[token]:
            return False
        if not constraint.accept(token):
            return True
    return True


@pytest.mark.parametrize(
    ("schema", "extra"),
    [
        (POINT, False),
        ({**POINT, "additionalProperties": False}, False),
        ({**POINT, "additionalProperties": True}, True),
        ({**POINT, "additionalProperties": {"type": "integer"}}, True),
        ({**POINT, "additionalProperties": {"type": "string"}}, False),
        ({**POINT, "patternProperties": {"^y$": {"type": "integer"}}}, True),
        ({**POINT, "minProperties": 1}, True),
        ({"type": "object"}, True),
        ({"anyOf": [POINT, {"type": "null"}]}, False),
        ({**REFERENCE, **DEFINED}, False),
        ({"allOf": [REFERENCE], "description": "A point.", **DEFINED}, False),
        ({"allOf": [POINT, OTHER]}, True),
        ({**REFERENCE, **OTHER, **DEFINED}, True),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_only_listed_properties_are_written(schema, extra, inside):
    if inside:
        schema = {"type": "array", "items": schema, "$defs": schema.get("$defs", {})}
    for value, allowed in (({"x": 1}, True), ({"x": 1, "y": 2}, extra)):
        assert allows(schema, [value] if inside else value) == allowed


def test_required_properties_that_are_not_listed_may_be_anything():
    schema = {**POINT, "required": ["x", "z"]}
    assert allows(schema, {"x": 1, "z": [2]})
    assert not allows(schema, {"x": 1})
    assert not allows(schema, {"x": 1, "z": 2, "y": 3})


def test_the_given_schema_is_not_changed():
    given = {**POINT, "required": ["x", "z"], **DEFINED}
    before = json.dumps(given)
    assert close_schema(given) != given
    assert json.dumps(given) == before
