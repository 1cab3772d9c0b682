"""The arguments of a call have only the properties that the function's schema lists, at every level."""

import json

import pytest

from clearhead.generate.constraint import Grammar
from clearhead.generate.tool_grammar import write_grammar
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tool_calls import PLAIN, Tool

BYTES = Tokenizer.train("byte", [])
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
OPEN = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "additionalProperties": {"type": "integer"},
}
ALTERNATIVES = {"anyOf": [POINT, {"type": "null"}]}
SHARED = {"$defs": {"P": POINT}}
REFERENCE = {"$ref": "#/$defs/P"}


def allows(parameters, arguments):
    """Whether a model can write a call with these arguments."""
    lark = write_grammar(BYTES, PLAIN, [Tool("f", parameters)], required=True)
    constraint = Grammar(BYTES, BYTES.n_vocab, lark=lark).begin()
    for token in BYTES.encode(PLAIN.write("f", arguments)):
        if not constraint.allowed()[token]:
            return False
        constraint.accept(token)
    return True


def parameters(schema, **others):
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], **others}


@pytest.mark.parametrize(
    ("schema", "extra"),
    [
        (POINT, False),
        (OPEN, True),
        ({"type": "object"}, True),  # any object
        (ALTERNATIVES, False),
        (
            {"allOf": [POINT, {"properties": {"y": {"type": "integer"}}}]},
            True,
        ),  # one lists what the other does not
    ],
)
@pytest.mark.parametrize("in_list", [False, True])
def test_nested_objects_have_only_the_listed_properties(schema, extra, in_list):
    given = parameters({"type": "array", "items": schema} if in_list else schema)
    for value, allowed in (({"x": 1}, True), ({"x": 1, "y": 2}, extra)):
        assert allows(given, {"a": [value] if in_list else value}) == allowed


def test_shared_definitions_have_only_the_listed_properties():
    given = parameters({"type": "array", "items": REFERENCE}, **SHARED)
    assert allows(given, {"a": [{"x": 1}, {"x": 2}]})
    assert not allows(given, {"a": [{"x": 1, "y": 2}]})
    more = parameters({**REFERENCE, "properties": {"y": {"type": "integer"}}}, **SHARED)
    assert allows(more, {"a": {"x": 1, "y": 2}})


def test_the_given_schema_is_not_changed():
    given = parameters(ALTERNATIVES, **SHARED)
    before = json.dumps(given)
    assert allows(given, {"a": None})
    assert json.dumps(given) == before
