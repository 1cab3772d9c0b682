"""Conversations: messages as token ids, of which only the assistant's replies are targets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from clearhead.errors import UserError
from clearhead.files import read_own_text, write_text
from clearhead.text.chat import check_messages, render, render_replies
from clearhead.text.corpus import Document
from clearhead.text.sources import PACKED_SUFFIXES, show
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED, Tokens

SUFFIX = ".jsonl"
LARGEST_FILE = 2**28  # bytes; larger files are not appended to, since the file is read and written whole


def are_conversations(documents: Sequence[Document]) -> bool:
    """Whether all texts are conversations, by file name. A mixture is an error."""
    named = [document for document in documents if _is_named_so(document.name.lower())]
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
    template = tokenizer.config.get("chat_template")
    if not isinstance(template, str):
        raise UserError("this model has no chat template: it was not trained on conversations")
    bos, eos = (tokenizer.special(role) or "" for role in ("bos_token", "eos_token"))
    return render(template, messages, bos=bos, eos=eos, add_generation_prompt=add_generation_prompt)


def tokenize_conversations(documents: Sequence[Document], tokenizer: Tokenizer) -> Tokens:
    """The tokens of all conversations, one document each, rendered with the model's chat template."""
    template = tokenizer.config.get("chat_template")
    if not isinstance(template, str):
        raise UserError(
            "the model to fine-tune has no chat template: train it on plain text, or start from one "
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
    """Save a conversation as the last line of a file, or in place of its earlier line; return the line and
    its number.

    All other lines are kept, and must be conversations.
    """
    there = read_own_text(path, "conversations", LARGEST_FILE) if path.exists() else ""
    lines = there.removesuffix("\n").split("\n") if there else []
    for number, each in enumerate(lines, 1):
        try:
            if each.strip():
                _read_messages(each)
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


def _is_named_so(name: str) -> bool:
    for packed in PACKED_SUFFIXES:
        name = name.removesuffix(packed)
    return name.endswith(SUFFIX)


def _read(document: Document, specials: Sequence[str]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The location and messages of each conversation."""
    empty = True
    for number, line in enumerate(_lines(document), 1):
        if not line.strip():
            continue
        where, empty = f"{show(document.name)}, line {number}", False
        try:
            yield where, _parse(line, specials)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    if empty:
        raise UserError(f"{show(document.name)} has no conversations: give some, one per line")


def _read_messages(line: str) -> list[dict[str, str]]:
    expected = 'expected {"messages": [{"role": …, "content": …}, …]}'
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise UserError(f"this is not valid JSON; {expected}") from None
    if not isinstance(found, dict) or "messages" not in found:
        raise UserError(f"there are no messages; {expected}")
    return check_messages(found["messages"])


def _parse(line: str, specials: Sequence[str]) -> list[dict[str, str]]:
    """The messages of a line; raises an error if it cannot be used for training."""
    messages = _read_messages(line)
    if all(message["role"] != "assistant" for message in messages):
        raise UserError("the assistant says nothing, so there is nothing to learn: remove this line")
    if messages[0]["role"] == "assistant":
        raise UserError("the assistant speaks first: expected a user or system message before it")
    for message in messages:
        for special in specials:
            if special in message["content"]:
                raise UserError(
                    f"a message contains {special}, which is a special token of the model: remove it"
                )
    return messages


def _lines(document: Document) -> Iterator[str]:
    held = ""
    for text in document.read():
        *whole, held = (held + text).split("\n")
        yield from whole
    yield held
