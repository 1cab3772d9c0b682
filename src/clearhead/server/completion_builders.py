"""The responses of the OpenAI routes and the chunks of their streams, built from an engine's events."""

from __future__ import annotations

import codecs
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from clearhead.api import openai
from clearhead.generate.request import Event
from clearhead.generate.sampler import SampledToken
from clearhead.generate.scoring import ScoredToken
from clearhead.language_model import LanguageModel
from clearhead.server.chat_prompts import ChatPrompt
from clearhead.server.chat_reply import ChatReply
from clearhead.server.generation import FINISH_REASONS, Choice
from clearhead.text.tokenizer import Tokenizer


class ResponseBuilder(ABC):
    """Builds the responses and chunks of one of the two routes."""

    id_prefix: str

    def __init__(self, model: LanguageModel, body: Any) -> None:
        self.model, self.body = model, body
        self.head: dict[str, Any] = {
            "id": f"{self.id_prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,
        }

    def first_chunks(self, _: int) -> list[BaseModel]:
        """Return the chunks sent before any token, for this number of choices."""
        return []

    def token_text(self, i: int) -> str:
        return self.model.tokenizer.pieces([i])[0]

    @abstractmethod
    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        """Return the complete response."""

    @abstractmethod
    def chunk(self, number: int, event: Event) -> BaseModel | None:
        """Return the chunk for the next token of a choice, or None if there is nothing to send yet."""

    @abstractmethod
    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        """Return the last chunk of a stream that reports its usage."""


class TextOffsets:
    """Where each token of a choice starts in its text, counted in characters."""

    def __init__(self, tokenizer: Tokenizer, begins: str | None) -> None:
        """`begins` is the echoed prompt; without one, the text continues the prompt and keeps all its spaces."""
        self.tokenizer = tokenizer
        self.length = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._drops_space = begins is not None and not begins.startswith(" ")

    def push(self, i: int) -> int:
        """The offset of the next token."""
        start, spelled = self.length, self.tokenizer.spell(i)
        if spelled and self._drops_space:  # some tokenizers put a space before every text
            spelled, self._drops_space = spelled.removeprefix(b" "), False
        self.length += len(self._decoder.decode(spelled))
        return start


class CompletionBuilder(ResponseBuilder):
    id_prefix = "cmpl"

    def __init__(
        self, model: LanguageModel, body: openai.CompletionRequest, echoed: Sequence[str] = ()
    ) -> None:
        """`echoed` are the prompts' texts, if they are part of the response."""
        super().__init__(model, body)
        self.echoed = echoed
        self.offsets: dict[int, TextOffsets] = {}  # by choice
        self.scored = body.logprobs is not None

    def first_chunks(self, count: int) -> list[BaseModel]:
        if self.scored or not self.echoed:
            return []  # the scored prompt is the text of the first event
        choices = [openai.CompletionChoice(index=i, text=self._echo(i)) for i in range(count)]
        return [openai.Completion(**self.head, choices=[choice]) for choice in choices]

    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = [
            openai.CompletionChoice(
                index=i,
                text=self._echo(i) + choice.text,
                logprobs=self._logprobs(i, choice.events),
                finish_reason=choice.finish_reason,
            )
            for i, choice in enumerate(choices)
        ]
        return openai.Completion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        if not event.text and event.finish_reason is None and not self.scored:
            return None
        choice = openai.CompletionChoice(
            index=number,
            text=event.text if event.prompt is None or not self.scored else self._echo(number),
            logprobs=self._logprobs(number, [event]),
            finish_reason=FINISH_REASONS.get(event.finish_reason or ""),
        )
        return openai.Completion(**self.head, choices=[choice])

    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        return openai.Completion(**self.head, choices=[], usage=usage)

    def _echo(self, number: int) -> str:
        return self.echoed[number // (self.body.n or 1)] if self.echoed else ""

    def _logprobs(self, number: int, events: list[Event]) -> openai.CompletionLogprobs | None:
        if not self.scored:
            return None
        if number not in self.offsets:
            begins = self._echo(number) if self.echoed else None
            self.offsets[number] = TextOffsets(self.model.tokenizer, begins)
        logprobs = openai.CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for event in events:
            if event.prompt is not None and self.echoed:
                for token in event.prompt.tokens:
                    self._append(logprobs, number, token)
            if event.token is not None:
                self._append(logprobs, number, event.token)
        return logprobs

    def _append(
        self, logprobs: openai.CompletionLogprobs, number: int, token: SampledToken | ScoredToken
    ) -> None:
        logprobs.text_offset.append(self.offsets[number].push(token.id))
        logprobs.tokens.append(self.token_text(token.id))
        logprobs.token_logprobs.append(_finite(token.log_probability))
        alternatives = {self.token_text(i): _finite(p) for i, p in token.alternatives}
        logprobs.top_logprobs.append(None if token.log_probability is None else alternatives)


class ChatBuilder(ResponseBuilder):
    id_prefix = "chatcmpl"

    def __init__(self, model: LanguageModel, body: openai.ChatRequest, prompt: ChatPrompt) -> None:
        super().__init__(model, body)
        self.prompt = prompt
        self.replies: dict[int, ChatReply] = {}  # by choice

    def reply(self, number: int) -> ChatReply:
        if number not in self.replies:
            self.replies[number] = ChatReply(self.model.tokenizer, self.prompt)
        return self.replies[number]

    def first_chunks(self, count: int) -> list[BaseModel]:
        delta = openai.MessageDelta(role="assistant", content="")
        return [
            openai.ChatChunk(**self.head, choices=[openai.ChatChunkChoice(index=i, delta=delta)])
            for i in range(count)
        ]

    def response(self, choices: list[Choice], usage: openai.Usage) -> BaseModel:
        listed = []
        for i, choice in enumerate(choices):
            reply = self.reply(i)
            for event in choice.events:
                reply.push(event)
            message = openai.Reply(content=reply.text if reply.text or not reply.call else None)
            if reply.call is not None:
                message.tool_calls = [reply.call]
            listed.append(
                openai.ChatChoice(
                    index=i,
                    message=message,
                    logprobs=self._logprobs(choice.events),
                    finish_reason=reply.finish_reason(choice.finish_reason),
                )
            )
        return openai.ChatCompletion(**self.head, choices=listed, usage=usage)

    def chunk(self, number: int, event: Event) -> BaseModel | None:
        reply, ends = self.reply(number), event.finish_reason is not None
        piece = reply.push(event)
        call = reply.delta(piece)
        if not piece.text and call is None and not ends and not self.body.logprobs:
            return None
        choice = openai.ChatChunkChoice(
            index=number,
            delta=openai.MessageDelta(
                content=piece.text or None, tool_calls=None if call is None else [call]
            ),
            logprobs=self._logprobs([event]),
            finish_reason=reply.finish_reason(FINISH_REASONS.get(event.finish_reason or "")),
        )
        return openai.ChatChunk(**self.head, choices=[choice])

    def usage_chunk(self, usage: openai.Usage) -> BaseModel:
        return openai.ChatChunk(**self.head, choices=[], usage=usage)

    def _logprobs(self, events: list[Event]) -> openai.ChatLogprobs | None:
        if not self.body.logprobs:
            return None
        return openai.ChatLogprobs(
            content=[
                openai.TokenLogprob(
                    **self._token(event.token.id, event.token.log_probability),
                    top_logprobs=[
                        openai.Alternative(**self._token(i, p)) for i, p in event.token.alternatives
                    ],
                )
                for event in events
                if event.token is not None
            ]
        )

    def _token(self, i: int, log_probability: float | None) -> dict[str, Any]:
        """Return a token with its bytes, which may be part of a character."""
        tokenizer = self.model.tokenizer
        spelled = list(tokenizer.spell(i)) if tokenizer.has_text(i) else None
        return {"token": self.token_text(i), "logprob": _finite(log_probability), "bytes": spelled}


def _finite(number: float | None) -> float | None:
    return number if number is not None and -1e30 < number < 1e30 else None
