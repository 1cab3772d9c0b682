"""Tools (functions that a model may call), and how a chat template writes a call, found by rendering a known one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clearhead.errors import UserError
from clearhead.text.chat import render_all

MAX_DEPTH = 64  # of nested objects and arrays in a schema or in arguments
LONGEST_PROBE, LONGEST_PART = 2**16, 200  # characters of a rendered probe, and of a part of a call in it
CALL_ID = "\0"  # in `CallSyntax.after`, for nine letters and digits, as Mistral's templates require of an id


@dataclass(frozen=True)
class Tool:
    """A function. The parameters are a JSON schema of an object; a strict schema must be supported in full."""

    name: str
    parameters: Mapping[str, Any]
    description: str | None = None
    strict: bool = False

    def as_function(self) -> dict[str, Any]:
        described = {} if self.description is None else {"description": self.description}
        return {"name": self.name, **described, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class CallSyntax:
    """A call is `before`, the name, `between`, the arguments as a JSON object, and `after`."""

    before: str
    between: str
    after: str

    def write(self, name: str, arguments: Any) -> str:
        return f"{self.before}{name}{self.between}{json.dumps(arguments, ensure_ascii=False)}{self.after}"


PLAIN = CallSyntax('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>")

NAME, KEY, VALUE, TEXT, RESULT, ID = (
    "probed_name",
    "probed_key",
    "probed_value",
    "Probed.",
    "Found.",
    "prob9ed01",
)
ARGUMENTS = re.compile(rf'\{{\s*"{KEY}"\s*:\s*"{VALUE}"\s*\}}')


@lru_cache(maxsize=64)
def find_syntax(template: str, bos: str, eos: str, ends: tuple[str, ...]) -> CallSyntax | None:
    """How this template writes a call; None if it omits tools, calls or results, or does not write calls as JSON.

    `ends` are the texts of the tokens that end a reply.
    """
    tool = Tool(NAME, {"type": "object", "properties": {KEY: {"type": "string"}}}, "Probes.")
    tools = [{"type": "function", "function": tool.as_function()}]
    called = {"id": ID, "type": "function", "function": {"name": NAME, "arguments": {KEY: VALUE}}}
    user: dict[str, Any] = {"role": "user", "content": "a"}
    silent: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [called]}
    result = {"role": "tool", "content": RESULT, "tool_call_id": ID, "name": NAME}
    conversations = [[user], [user, silent], [user, silent, result], [user, {**silent, "content": TEXT}]]
    values = [{"messages": each, "tools": tools, "prompt": len(each) != 2} for each in conversations]
    values[3]["prompt"] = False
    shown, call, answered, spoken = render_all(template, values, bos=bos, eos=eos)
    if shown is None or call is None or answered is None or NAME not in shown or RESULT not in answered:
        return None
    if max(len(shown), len(call), len(spoken or "")) > LONGEST_PROBE:
        return None
    # Some templates write a call without the text before it.
    for text, start in ((spoken or "", TEXT), (call, None)):
        match = next(iter(reversed(list(ARGUMENTS.finditer(text)))), None)
        name = -1 if match is None else text.rfind(NAME, 0, match.start())
        begin = _end_of(
            text[: max(0, name)], shown[-LONGEST_PART:] if start is None else start, start is None
        )
        if match is None or name < 0 or begin is None:
            continue
        rest = text[match.end() :]
        after = rest[: min((rest.index(end) for end in ends if end in rest), default=len(rest))]
        syntax = CallSyntax(
            text[begin:name].lstrip(),
            text[name + len(NAME) : match.start()],
            after.rstrip().replace(ID, CALL_ID),
        )
        if _is_usable(syntax):
            return syntax
    return None


def _end_of(text: str, part: str, any_end: bool) -> int | None:
    """Where the last occurrence of `part` ends or, with `any_end`, that of the longest suffix of it in the text."""
    for first in range(len(part) if any_end else 1):
        if (place := text.rfind(part[first:])) >= 0:
            return place + len(part) - first
    return None


def _is_usable(syntax: CallSyntax) -> bool:
    parts = (syntax.before, syntax.between, syntax.after)
    return (
        bool(syntax.before and syntax.between)
        and max(map(len, parts)) <= LONGEST_PART
        and ID not in syntax.before + syntax.between
    )


def check_depth(value: Any, what: str) -> None:
    """Raise an error if a JSON value is nested too deeply for a later step."""
    level, depth = [value], 0
    while level := [
        each
        for container in level
        if isinstance(container, dict | list)
        for each in (container.values() if isinstance(container, dict) else container)
    ]:
        depth += 1
        if depth > MAX_DEPTH:
            raise UserError(f"{what}: nested more than {MAX_DEPTH} levels deep; use fewer levels")
