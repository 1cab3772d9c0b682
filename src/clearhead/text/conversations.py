"""Conversations: messages as token ids, of which only the assistant's replies are targets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.files import read_own_text, write_text
from clearhead.text.chat import check_messages, render, render_replies
from clearhead.text.corpus import Document
from clearhead.text.sources import show, suffix_of
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED, Tokens

SUFFIX = ".jsonl"  # one conversation per line
LIST_SUFFIX = ".json"  # a list of conversations
EXPECTED = 'expected {"messages": [{"role": …, "content": …}, …]}'
_SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "system": "system",
}
LARGEST_FILE = 2**28  # bytes; larger files are not appended to, since the file is read and written whole


def are_conversations(documents: Sequence[Document]) -> bool:
    """Whether all texts are conversations, by file name. A mixture is an error."""
    named = [document for document in documents if suffix_of(Path(document.name)) in (SUFFIX, LIST_SUFFIX)]
    if named and len(named) < len(documents):
        other = next(document for document in documents if document not in named)
        raise UserError(
            f"{show(named[0].name)} contains conversations and {show(other.name)} does not: "
            "give one kind at a time"
        )
    return bool(named)


def render_messages(
    tokenizer: Tokenizer, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
) -> str:
    """The messages, rendered with the model's chat template."""
    template = _need_template(tokenizer)
    bos, eos = (tokenizer.special(role) or "" for role in ("bos_token", "eos_token"))
    return render(template, messages, bos=bos, eos=eos, add_generation_prompt=add_generation_prompt)


def _need_template(tokenizer: Tokenizer) -> str:
    if tokenizer.chat_template is None:
        raise UserError("this model has no chat template: it was not trained on conversations")
    return tokenizer.chat_template


def encode_messages(tokenizer: Tokenizer, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The ids of the messages as a prompt. Special tokens in the messages are ordinary characters."""
    _need_template(tokenizer)
    return tokenizer.encode_guarded(render_messages(tokenizer, tokenizer.guard(check_messages(messages))))


def render_plainly(messages: Sequence[Mapping[str, str]]) -> str:
    """The messages as plain text, which is what a model without a chat template has seen: one line each, no roles.

    A reply continues the line before it. A model that was not trained on conversations continues the text.
    """
    text = ""
    for message in check_messages(messages):
        reply = message["role"] == "assistant"
        text += message["content"] if reply or not text or text.endswith("\n") else f"\n{message['content']}"
    return text


def tokenize_conversations(documents: Sequence[Document], tokenizer: Tokenizer) -> Tokens:
    """The tokens of all conversations, one document each, rendered with the model's chat template."""
    template = tokenizer.chat_template
    if template is None:
        raise UserError(
            "the model to fine-tune has no chat template: train it on plain text, or start from a model "
            "that was made for conversations"
        )
    lines = [line for document in documents for line in _read(document, tokenizer.specials)]
    bos, eos = (tokenizer.special(role) or "" for role in ("bos_token", "eos_token"))
    rendered = render_replies(template, [messages for _, messages in lines], bos=bos, eos=eos)
    all_ids, all_targets = [], []
    firsts: list[int] = []  # the first token of each conversation
    length = 0
    for (where, _), found in zip(lines, rendered, strict=False):
        if isinstance(found, UserError):
            raise UserError(f"{where}: {found}")
        text, replies = found
        try:
            ids, starts = tokenizer.encode_template(text)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        at, row = np.array(starts), np.array(ids, np.int64)
        learned = np.zeros(len(row), bool)
        for begin, end in replies:
            learned |= (at >= begin) & (at < end)
        learned[:1] = False  # nothing precedes it
        firsts.append(length)
        length += len(row)
        all_ids.append(row)
        all_targets.append(np.where(learned, row, IGNORED))
    return Tokens.of(np.concatenate(all_ids), Tokens.of(np.concatenate(all_targets)), starts=firsts)


def save_conversation(
    path: Path, messages: Sequence[Mapping[str, str]], earlier: str | None = None
) -> tuple[str, int]:
    """Save a conversation as the last line of a file, or in place of its earlier line.

    Return the line and its number. All other lines are kept, and must be conversations.
    """
    there = read_own_text(path, "conversations", LARGEST_FILE) if path.exists() else ""
    lines = there.removesuffix("\n").split("\n") if there else []
    for number, each in enumerate(lines, 1):
        try:
            if each.strip():
                _messages_of(_load(each))
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    line = json.dumps({"messages": list(messages)}, ensure_ascii=False)
    if earlier in lines:
        place = len(lines) - 1 - lines[::-1].index(earlier)
        lines[place] = line
    else:
        place = len(lines)
        lines.append(line)
    write_text(path, "".join(f"{each}\n" for each in lines))
    return line, place + 1


def _read(document: Document, specials: Sequence[str]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The location and messages of each conversation."""
    empty = True
    is_list = suffix_of(Path(document.name)) == LIST_SUFFIX
    found: Iterator[tuple[str, Any]] = _listed(document) if is_list else numbered_lines(document)
    for where, each in found:
        empty = False
        try:
            yield where, _check(each if is_list else _load(each), specials)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    if empty:
        how = "as a JSON list" if is_list else "one per line"
        raise UserError(f"{show(document.name)} contains no conversations: add some, {how}")


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"this is not valid JSON; {EXPECTED}") from None


def _messages_of(found: object) -> list[dict[str, str]]:
    """The messages of one conversation in OpenAI's or ShareGPT's format."""
    if isinstance(found, dict) and isinstance(found.get("conversations"), list) and "messages" not in found:
        return check_messages([_from_sharegpt(message) for message in found["conversations"]])
    if not isinstance(found, dict) or "messages" not in found:
        raise UserError(f"there are no messages; {EXPECTED}")
    return check_messages(found["messages"])


def _from_sharegpt(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("from"), str):
        return message
    role = _SHAREGPT_ROLES.get(message["from"], message["from"])
    return {"role": role, "content": message.get("value")}


def _check(found: object, specials: Sequence[str]) -> list[dict[str, str]]:
    """The messages of a conversation; raises an error if it cannot be used for training."""
    messages = _messages_of(found)
    if all(message["role"] != "assistant" for message in messages):
        raise UserError("the assistant says nothing, so there is nothing to learn: remove this conversation")
    if messages[0]["role"] == "assistant":
        raise UserError("the assistant speaks first: expected a user or system message before it")
    for message in messages:
        for special in specials:
            if special in message["content"] or special in message["role"]:
                raise UserError(
                    f"a message contains {special}, which is a special token of the model: remove it"
                )
    return messages


def numbered_lines(document: Document, name: str | None = None) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, and where it is: "talks.jsonl, line 3"."""
    name, held, number = name or show(document.name), "", 0
    for text in chain(document.read(), ["\n"]):
        *whole, held = (held + text).split("\n")
        for line in whole:
            number += 1
            if line.strip():
                yield f"{name}, line {number}", line


def _listed(document: Document) -> Iterator[tuple[str, Any]]:
    """Each conversation in a JSON list, or the only one, and where it is."""
    name, text = show(document.name), "".join(document.read())
    if not text.strip():
        return
    try:
        found = _load(text)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    for number, each in enumerate(found if isinstance(found, list) else [found], 1):
        yield f"{name}, conversation {number}", each
