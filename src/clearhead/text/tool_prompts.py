"""Conversations with tools as prompts: rendered by the chat template or, if it does not support tools, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clearhead.errors import UserError
from clearhead.text.chat import render_tools
from clearhead.text.conversations import encode_messages, render_plainly
from clearhead.text.inputs import encode_prompt
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tool_calls import PLAIN, CallSyntax, Tool, find_syntax

INSTRUCTION = "You can call these functions. To call one, reply in this form and write nothing after it:"


@dataclass(frozen=True)
class ToolPrompt:
    """A conversation with tools as ids, and how the reply writes a call."""

    ids: list[int]
    syntax: CallSyntax


def encode_tool_messages(
    tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]
) -> ToolPrompt:
    """The ids of the tools, and of messages that may contain tool calls (`tool_calls`) and results (role `tool`).

    All are rendered by the chat template, or as plain text if the template does not support them. The arguments of
    a call are an object, or a string if they were not a valid JSON object.
    """
    template = tokenizer.chat_template
    bos, eos = (tokenizer.special(role) or "" for role in ("bos_token", "eos_token"))
    ends = tuple(tokenizer.pieces(tokenizer.end_ids))
    syntax = None if template is None else find_syntax(template, bos, eos, ends)
    if template is None or syntax is None:
        plain = write_plainly(messages, tools)
        if template is None:
            text = render_plainly(plain)
            return ToolPrompt(encode_prompt(text or None, tokenizer, tokenizer.n_vocab), PLAIN)
        return ToolPrompt(encode_messages(tokenizer, plain), PLAIN)
    listed = tokenizer.guard([{"type": "function", "function": tool.as_function()} for tool in tools])

    def show(messages: Sequence[Mapping[str, Any]]) -> str:
        guarded = tokenizer.guard([dict(message) for message in messages])
        return render_tools(template, guarded, listed, bos=bos, eos=eos)

    try:
        text = show(messages)
    except UserError:
        with_objects = [_without_text_arguments(message) for message in messages]
        if with_objects == messages:
            raise
        text = show(with_objects)
    return ToolPrompt(tokenizer.encode_guarded(text), syntax)


def _without_text_arguments(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with an empty object in place of arguments that are text, because many templates need an object."""
    calls = [
        {**call, "function": {**call["function"], "arguments": {}}}
        if isinstance(call["function"]["arguments"], str)
        else call
        for call in message.get("tool_calls") or ()
    ]
    return {**message, "tool_calls": calls} if calls else dict(message)


def write_plainly(messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> list[dict[str, str]]:
    """The messages with tools, tool calls and results as text, for templates that support none of them.

    The tools are at the end of the system message or, without one, at the start of the user's first message.
    """
    plain: list[dict[str, str]] = []
    after_result = False
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "tool":
            content = f"<tool_response>\n{content}\n</tool_response>"
            if after_result:
                plain[-1]["content"] += f"\n{content}"
            else:
                plain.append({"role": "user", "content": content})
        else:
            called = [
                PLAIN.write(each["function"]["name"], each["function"]["arguments"])
                for each in message.get("tool_calls") or ()
            ]
            plain.append(
                {"role": role, "content": "\n".join([content, *called] if content else called or [""])}
            )
        after_result = role == "tool"
    if not tools:
        return plain
    form = PLAIN.before + "NAME" + PLAIN.between + "{…}" + PLAIN.after
    listed = "\n".join(json.dumps(tool.as_function(), ensure_ascii=False) for tool in tools)
    text = f"{INSTRUCTION}\n{form}\n{listed}"
    first = plain[0] if plain else {"role": "system", "content": ""}
    if first["role"] == "system":
        first["content"] = f"{first['content']}\n\n{text}".lstrip()
    elif (user := next((each for each in plain if each["role"] == "user"), None)) is not None:
        user["content"] = f"{text}\n\n{user['content']}"
    else:
        plain.insert(0, {"role": "system", "content": text})
    return plain
