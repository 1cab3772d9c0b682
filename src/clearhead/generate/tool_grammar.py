"""The grammar of a reply that may call a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from clearhead.errors import UserError
from clearhead.generate.closed_schema import close_schema
from clearhead.generate.constraint import JSON_STYLE, MAX_CHARACTERS, Grammar
from clearhead.generate.schema_patterns import check_patterns
from clearhead.generate.tool_reply import CallText
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tool_calls import CallSyntax, Tool


def write_grammar(
    tokenizer: Tokenizer,
    syntax: CallSyntax,
    tools: Sequence[Tool],
    required: bool,
    text_schema: Mapping[str, Any] | None = None,
) -> str:
    """The grammar, in llguidance's Lark syntax, of a call to one of these tools.

    Unless a call is required, the reply may also be text, which may precede the call; with `text_schema`, the text is
    JSON, and nothing precedes the call.
    """
    before = CallText(tokenizer, syntax.before)
    calls = " | ".join(f"call{i}" for i in range(len(tools)))
    rules = [f"call: ({calls}) {CallText(tokenizer, syntax.after).rule}".rstrip()]
    for i, tool in enumerate(tools):
        begins = CallText(tokenizer, tool.name + syntax.between).rule
        rules += [f"call{i}: {begins} arguments{i}", f"arguments{i}: %json {_schema(tool)}"]
    if required:
        start = [f"{before.rule} call"]
    elif text_schema is not None:
        start = ["json", f"{before.rule} call"]
        rules.append(f"json: %json {_styled(text_schema)}")
    else:
        # The text cannot contain the start of a call, so that a reply can be read in one way only.
        start = ["TEXT", "lead call"]
        rules.append(f"lead[suffix={json.dumps(before.text)}]: /(?s:.*)/")
        rules.append(f"TEXT: /(?s:.*)/ & ~/(?s:.*{_escape(before.text)}.*)/")
        if before.has_special:
            start.append(f"TEXT {before.rule} call")
    return "\n".join([f"start: {' | '.join(start)}", *rules])


def check_schemas(tokenizer: Tokenizer, n_vocab: int, tools: Sequence[Tool]) -> None:
    """Raise an error that names the first tool whose schema cannot be used."""
    for tool in tools:
        try:
            Grammar(tokenizer, n_vocab, lark=f"start: %json {_schema(tool)}")
        except UserError as error:
            raise UserError(f"the parameters of the tool {tool.name}: {error}") from None


def _schema(tool: Tool) -> str:
    if tool.parameters.get("type", "object") != "object":
        raise UserError(f"the parameters of the tool {tool.name}: expected a JSON schema of type object")
    schema = {"type": "object", "properties": {}, **tool.parameters}
    return _styled(schema, lenient=not tool.strict)


def _styled(schema: Mapping[str, Any], lenient: bool = False) -> str:
    style = {**JSON_STYLE, "lenient": lenient}
    text = json.dumps({**close_schema(schema), "x-guidance": style}, allow_nan=False)
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"the JSON schema has {len(text)} characters: expected at most {MAX_CHARACTERS}")
    check_patterns(schema)
    return text


def _escape(text: str) -> str:
    """The text as a regular expression."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)
