"""A reply in a conversation as it is generated: its text and its tool call, if any."""

from __future__ import annotations

import secrets
from typing import Any

from clearhead.api.tools import CalledFunction, FunctionDelta, ReplyCall, ToolCallDelta
from clearhead.generate.request import Event
from clearhead.generate.tool_reply import ReplyPiece, ReplyReader
from clearhead.server.chat_prompts import ChatPrompt
from clearhead.text.tokenizer import Tokenizer


class ChatReply:
    """The text and the call so far. Without a grammar, all of the reply is text."""

    def __init__(self, tokenizer: Tokenizer, prompt: ChatPrompt) -> None:
        calls = prompt.syntax is not None and prompt.grammar is not None
        self.reader = ReplyReader(tokenizer, prompt.syntax) if calls and prompt.syntax else None
        self.end_ids = tokenizer.end_ids
        self.text = ""
        self.call: ReplyCall | None = None

    def push(self, event: Event) -> ReplyPiece:
        """Process the text of the next event; return what it adds to the reply's text and to the call."""
        piece = ReplyPiece(event.text) if self.reader is None else self.reader.push(event.text)
        if event.finish_reason is not None and self.reader is not None:
            held = self.reader.close(cut=not self._ended(event))
            piece = ReplyPiece(piece.text + held, piece.name, piece.arguments)
        self.text += piece.text
        if piece.name is not None:
            # Nine letters and digits, as Mistral's chat templates require.
            self.call = ReplyCall(
                id=secrets.token_hex(5)[:9], function=CalledFunction(name=piece.name, arguments="")
            )
        if self.call is not None:
            self.call.function.arguments += piece.arguments
        return piece

    def _ended(self, event: Event) -> bool:
        """Whether the model ended the reply, rather than a limit or a stop string."""
        token = event.token
        return (
            event.finish_reason == "stop" and token is not None and (token.last or token.id in self.end_ids)
        )

    def delta(self, piece: ReplyPiece) -> ToolCallDelta | None:
        """What a piece adds to the call, as part of a stream."""
        if self.call is None or not (piece.name or piece.arguments):
            return None
        function = FunctionDelta(name=piece.name, arguments=piece.arguments)
        if piece.name is None:
            return ToolCallDelta(index=0, function=function)
        return ToolCallDelta(index=0, id=self.call.id, type="function", function=function)

    def finish_reason(self, reason: Any) -> Any:
        """The finish reason: `tool_calls` if the reply ended with a complete call."""
        complete = self.reader is not None and self.reader.complete
        return "tool_calls" if reason is not None and complete else reason
