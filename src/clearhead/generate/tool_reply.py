"""A reply that may call a tool: its text and the call's parts, as the reply is generated."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tool_calls import CALL_ID, CallSyntax

CALL_IDS = "/[a-zA-Z0-9]{9}/"


class CallText:
    """A part of a call, as it is decoded (without special tokens) and in llguidance's Lark syntax (with them)."""

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        special = "|".join(map(re.escape, sorted(filter(None, tokenizer.specials), key=len, reverse=True)))
        parts = re.split(f"({special})", text) if special else [text]
        self.text = "".join(parts[::2])  # as it is decoded
        self.has_special = len(parts) > 1
        terms = []
        for i, part in enumerate(parts):
            if i % 2 == 1:
                terms.append(f"<[{tokenizer.find(part)}]>")
                continue
            literals = [json.dumps(each, ensure_ascii=False) if each else "" for each in part.split(CALL_ID)]
            terms.append(f" {CALL_IDS} ".join(literals))
        self.rule = " ".join(filter(None, (term.strip() for term in terms)))


@dataclass(frozen=True)
class ReplyPiece:
    """What a piece of a reply adds to its text, and to a call, which begins with its name."""

    text: str = ""
    name: str | None = None
    arguments: str = ""


class ReplyReader:
    """Separates a reply that follows the grammar into its text and a call, piece by piece."""

    def __init__(self, tokenizer: Tokenizer, syntax: CallSyntax) -> None:
        self.before = CallText(tokenizer, syntax.before).text
        self.between = CallText(tokenizer, syntax.between).text
        self.name: str | None = None
        self.complete = False  # the call's arguments
        self._begun = False  # the call
        self._held = ""
        self._depth, self._in_string, self._escaped = 0, False, False

    def push(self, text: str) -> ReplyPiece:
        """Process the next piece; what may be the start of a call, or the spaces before one, is held back."""
        self._held += text
        plain = ""
        if not self._begun:
            plain, found, rest = self._held.partition(self.before)
            if not found:
                return ReplyPiece(self._release())
            self._begun, self._held, plain = True, rest, plain.rstrip()
        name = None
        if self.name is None:
            start, found, rest = self._held.partition(self.between)
            if not found:
                return ReplyPiece(plain)
            self.name = name = start
            self._held = rest
        arguments, self._held = self._read_arguments(self._held), ""
        return ReplyPiece(plain, name, arguments)

    def close(self, cut: bool) -> str:
        """The text held back, at the end of the reply; if that was cut off, the start of a call is not text."""
        held, self._held = self._held, ""
        return "" if self._begun or (cut and held.strip()) else held

    def _release(self) -> str:
        """The text held back that cannot belong to a call."""
        lengths = range(min(len(self._held), len(self.before)), 0, -1)
        keep = next((n for n in lengths if self.before.startswith(self._held[-n:])), 0)
        ready = self._held[: len(self._held) - keep].rstrip()
        self._held = self._held[len(ready) :]
        return ready

    def _read_arguments(self, text: str) -> str:
        """The part of the text up to the end of the JSON object."""
        for i, character in enumerate(text):
            if self.complete:
                return text[:i]
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = character == "\\"
                self._in_string = character != '"'
            elif character == '"':
                self._in_string = True
            else:
                self._depth += (character in "{[") - (character in "}]")
                self.complete = self._depth == 0 and character == "}"
        return text
