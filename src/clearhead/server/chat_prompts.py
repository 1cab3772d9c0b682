"""Conversations as OpenAI's clients send them, prepared for generation: messages, tools, and which tool to call."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clearhead.api import openai, tools
from clearhead.api.base import MAX_CHARACTERS
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError
from clearhead.server.prompts import check_length, prompt_ids
from clearhead.text.conversations import render_plainly
from clearhead.text.tool_calls import CallSyntax, Tool, check_depth
from clearhead.text.tool_prompts import encode_tool_messages


@dataclass(frozen=True)
class ChatConversation:
    """Messages in the form that chat templates expect, the tools to show, and those that may be called."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Tool] = ()
    callable: Sequence[Tool] = ()
    required: bool = False

    @property
    def uses_tools(self) -> bool:
        return bool(self.tools) or any(
            message["role"] == "tool" or message.get("tool_calls") for message in self.messages
        )


@dataclass(frozen=True)
class ChatPrompt:
    """The prompt's ids, the syntax of calls in the reply, and the reply's grammar if it may call a tool."""

    ids: list[int]
    syntax: CallSyntax | None = None
    grammar: str | None = None


def read_conversation(
    messages: Sequence[openai.Message],
    given: Sequence[tools.FunctionTool],
    choice: tools.ToolChoice | None,
) -> ChatConversation:
    """Check a conversation and the choice of a tool."""
    read = _read_messages(messages)
    functions = [_read_function(i, each.function) for i, each in enumerate(given)]
    by_name = {tool.name: tool for tool in functions}
    if len(by_name) < len(functions):
        raise invalid("tools: two functions have the same name; expected each name once", "tools")
    length = sum(len(message["content"]) for message in read)
    length += sum(len(each.function.arguments) for message in messages for each in message.tool_calls or ())
    length += sum(len(json.dumps(tool.as_function(), ensure_ascii=False)) for tool in functions)
    if length > MAX_CHARACTERS:
        what = "messages and the tools" if functions else "messages"
        message = f"the {what} have more than {MAX_CHARACTERS:,} characters in all"
        raise APIError(400, "too_large", message, "messages")
    if isinstance(choice, str | None):
        if choice == "required" and not functions:
            raise invalid("tool_choice: required, but there are no tools to call", "tool_choice")
        if choice == "none":
            return ChatConversation(read)
        return ChatConversation(read, functions, functions, choice == "required")
    named = [choice] if isinstance(choice, tools.NamedTool) else choice.allowed_tools.tools
    for each in named:
        if each.function.name not in by_name:
            message = f"tool_choice: there is no tool {each.function.name}; expected one of the tools' names"
            raise invalid(message, "tool_choice")
    required = isinstance(choice, tools.NamedTool) or choice.allowed_tools.mode == "required"
    names = {each.function.name for each in named}
    return ChatConversation(read, functions, [each for each in functions if each.name in names], required)


class ChatTemplates:
    """Prepares prompts; each chat template is rendered in a separate process.

    More processes than cores would only slow each other down and occupy worker threads. The limit is per model,
    because a malicious template may run until its timeout. With `plain`, a model without a template continues the
    conversation as text.
    """

    def __init__(self, plain: bool) -> None:
        self.plain = plain
        self._running: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(os.cpu_count() or 1)
        )

    async def prepare(
        self, model: LanguageModel, name: str, conversation: ChatConversation, text_schema: Any = None
    ) -> ChatPrompt:
        def work(_: threading.Event) -> ChatPrompt:
            prompt = _encode(model, conversation, self.plain)
            prompt = _constrain(model, conversation, prompt, text_schema)
            if len(prompt.ids) > model.config.n_context:
                check_length(model, len(prompt.ids), _count_of_tools(model, conversation, prompt, self.plain))
            return prompt

        if self.plain and model.tokenizer.chat_template is None:
            return await in_thread(work)
        async with self._running[name]:
            return await in_thread(work)


def _encode(model: LanguageModel, conversation: ChatConversation, plain: bool) -> ChatPrompt:
    tokenizer = model.tokenizer
    if conversation.uses_tools and (plain or tokenizer.chat_template is not None):
        prompt = encode_tool_messages(tokenizer, conversation.messages, conversation.tools)
        return ChatPrompt(prompt.ids, prompt.syntax)
    if plain and tokenizer.chat_template is None:
        return ChatPrompt(prompt_ids(model, render_plainly(conversation.messages)))
    return ChatPrompt(model.chat_ids(conversation.messages))


def _count_of_tools(
    model: LanguageModel, conversation: ChatConversation, prompt: ChatPrompt, plain: bool
) -> int:
    """How many of the prompt's tokens describe the tools; 0 if the messages alone cannot be encoded."""
    try:
        return len(prompt.ids) - len(_encode(model, ChatConversation(conversation.messages), plain).ids)
    except UserError:
        return 0


def _constrain(
    model: LanguageModel, conversation: ChatConversation, prompt: ChatPrompt, text_schema: Any = None
) -> ChatPrompt:
    """Add the grammar of the reply, if it may call a tool."""
    if prompt.syntax is None or not conversation.callable:
        return prompt
    from clearhead.generate.tool_grammar import check_schemas, write_grammar  # few requests need llguidance

    called, tokenizer = conversation.callable, model.tokenizer
    check_schemas(tokenizer, model.config.n_vocab, called)
    grammar = write_grammar(tokenizer, prompt.syntax, called, conversation.required, text_schema)
    return ChatPrompt(prompt.ids, prompt.syntax, grammar)


def _read_messages(messages: Sequence[openai.Message]) -> list[dict[str, Any]]:
    names: dict[str, str] = {}  # of the functions called, by the id of the call
    read = []
    for i, message in enumerate(messages):
        # Chat templates know the developer role by its older name.
        role = "system" if message.role == "developer" else message.role
        if not message.tool_calls and "content" not in message.model_fields_set:
            raise invalid(f"messages.{i}.content: Field required", f"messages.{i}.content")
        each: dict[str, Any] = {"role": role, "content": join_text(message.content)}
        if message.tool_calls:
            if role != "assistant":
                where = f"messages.{i}.tool_calls"
                raise invalid(f"{where}: expected only in messages with the role assistant", where)
            names |= {call.id: call.function.name for call in message.tool_calls}
            each["tool_calls"] = [_read_call(call) for call in message.tool_calls]
        if role == "tool" and message.tool_call_id is not None:
            each["tool_call_id"] = message.tool_call_id
            each["name"] = names.get(message.tool_call_id, "")
        read.append(each)
    return read


def _read_call(call: tools.ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": _read_arguments(call.function.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _read_arguments(text: str) -> dict[str, Any] | str:
    """The arguments of a call in the history, perhaps written by a model: the text itself if it is not an object."""
    try:
        arguments = json.loads(text.strip() or "{}")
        check_depth(arguments, "arguments")
        json.dumps(arguments, ensure_ascii=False).encode()  # raises for a lone surrogate
    except (ValueError, RecursionError):
        return text
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else text


def _read_function(i: int, function: tools.Function) -> Tool:
    check_depth(function.parameters or {}, f"tools.{i}")
    return Tool(function.name, function.parameters or {}, function.description, bool(function.strict))


def join_text(content: str | Sequence[openai.TextPart] | None) -> str:
    parts = content or ""
    return parts if isinstance(parts, str) else "".join(part.text for part in parts)


def json_schema(response_format: openai.ResponseFormat | None) -> Any:
    if response_format is None or response_format.type == "text":
        return None
    if response_format.type == "json_object":
        return {"type": "object"}
    if response_format.json_schema is None:
        raise UserError("response_format of type json_schema: expected a json_schema with a schema in it")
    return response_format.json_schema.json_schema


def invalid(message: str, param: str) -> APIError:
    return APIError(400, "invalid_request", message, param)
