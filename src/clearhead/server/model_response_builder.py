"""OpenAI's responses and the events of their streams, built from an engine's events."""

from __future__ import annotations

import secrets
import time
from typing import Any

from clearhead.api import model_responses as api
from clearhead.api.openai import Usage
from clearhead.generate.request import Event
from clearhead.language_model import LanguageModel
from clearhead.server.chat_prompts import ChatPrompt
from clearhead.server.chat_reply import ChatReply
from clearhead.server.generation import FINISH_REASONS


class ModelResponseBuilder:
    """Collects a reply, and turns each of the engine's events into events of the stream."""

    def __init__(self, model: LanguageModel, body: api.ResponseRequest, prompt: ChatPrompt) -> None:
        self.reply = ChatReply(model.tokenizer, prompt)
        self.finish_reason: str | None = None
        self.number = 0  # of the next event
        text_format = {"type": "text"} if body.text is None or body.text.format is None else None
        if text_format is None and body.text is not None and body.text.format is not None:
            text_format = body.text.format.model_dump(by_alias=True, exclude_none=True)
        choice = body.tool_choice or "auto"
        self.response = api.ModelResponse(
            id=f"resp_{secrets.token_hex(12)}",
            created_at=int(time.time()),
            model=body.model,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            temperature=body.temperature,
            top_p=body.top_p,
            tools=[each.model_dump() for each in body.tools or ()],
            tool_choice=choice if isinstance(choice, str) else choice.model_dump(),
            parallel_tool_calls=bool(body.parallel_tool_calls),
            text={"format": text_format},
            metadata=body.metadata or {},
        )

    def begin(self) -> list[api.ResponseEvent]:
        return [
            self._event(f"response.{name}", response=self.response) for name in ("created", "in_progress")
        ]

    def push(self, event: Event) -> list[api.ResponseEvent]:
        """Add the next token."""
        ends = event.finish_reason is not None
        piece = self.reply.push(event)
        events: list[api.ResponseEvent] = []
        if piece.text:
            if self._message is None:
                events += self._begin_message()
            self._text_of(self._message).text += piece.text
            events.append(self._of_text("response.output_text.delta", delta=piece.text, logprobs=[]))
        if piece.name is not None and self.reply.call is not None:
            events += self._end_message("completed")
            call = api.FunctionCall(
                id=f"fc_{secrets.token_hex(12)}",
                call_id=self.reply.call.id,
                name=piece.name,
                arguments="",
                status="in_progress",
            )
            self.response.output.append(call)
            events.append(self._of_item("response.output_item.added", item=call.model_copy()))
        if piece.arguments and self._call is not None:
            self._call.arguments += piece.arguments
            name = "response.function_call_arguments.delta"
            events.append(self._of_item(name, item_id=self._call.id, delta=piece.arguments))
        if ends:
            self.finish_reason = FINISH_REASONS.get(event.finish_reason or "")
            status = "incomplete" if self._incomplete else "completed"
            events += self._end_call(status) if self._call is not None else self._end_reply(status)
        return events

    def finish(self, usage: Usage) -> api.ModelResponse:
        """Complete the response, after the last token."""
        self.response.status = "incomplete" if self._incomplete else "completed"
        self.response.incomplete_details = api.IncompleteDetails() if self._incomplete else None
        self.response.completed_at = None if self._incomplete else int(time.time())
        self.response.usage = api.ResponseUsage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
        )
        return self.response

    def last(self) -> api.ResponseEvent:
        return self._event(f"response.{self.response.status}", response=self.response)

    def fail(self, message: str) -> api.ResponseEvent:
        self.response.status = "failed"
        self.response.error = api.ResponseError(code="invalid_prompt", message=message)
        return self.last()

    @property
    def _incomplete(self) -> bool:
        return self.finish_reason == "length" and self.reply.finish_reason("length") == "length"

    @property
    def _message(self) -> api.OutputMessage | None:
        return next((each for each in self.response.output if isinstance(each, api.OutputMessage)), None)

    @property
    def _call(self) -> api.FunctionCall | None:
        return next((each for each in self.response.output if isinstance(each, api.FunctionCall)), None)

    def _begin_message(self) -> list[api.ResponseEvent]:
        message = api.OutputMessage(id=f"msg_{secrets.token_hex(12)}", status="in_progress", content=[])
        self.response.output.append(message)
        # A copy, as for a call, because the item changes again before its event is sent.
        added = self._of_item("response.output_item.added", item=message.model_copy(deep=True))
        message.content.append(api.OutputText(text=""))
        part = self._text_of(message).model_copy()
        return [added, self._of_text("response.content_part.added", part=part)]

    def _end_reply(self, status: Any) -> list[api.ResponseEvent]:
        """End a reply without a call; an empty one has an empty message."""
        begun = [] if self._message is not None else self._begin_message()
        return begun + self._end_message(status)

    def _end_message(self, status: Any) -> list[api.ResponseEvent]:
        message = self._message
        if message is None:
            return []
        message.status = status
        text = self._text_of(message)
        return [
            self._of_text("response.output_text.done", text=text.text, logprobs=[]),
            self._of_text("response.content_part.done", part=text),
            self._of_item("response.output_item.done", item=message),
        ]

    def _end_call(self, status: Any) -> list[api.ResponseEvent]:
        call = self._call
        assert call is not None
        call.status = status
        name = "response.function_call_arguments.done"
        return [
            self._of_item(name, item_id=call.id, name=call.name, arguments=call.arguments),
            self._of_item("response.output_item.done", item=call),
        ]

    def _text_of(self, message: api.OutputMessage | None) -> api.OutputText:
        assert message is not None
        return message.content[0]

    def _of_text(self, kind: str, **fields: Any) -> api.ResponseEvent:
        assert self._message is not None
        return self._of_item(kind, item_id=self._message.id, content_index=0, **fields)

    def _of_item(self, kind: str, **fields: Any) -> api.ResponseEvent:
        return self._event(kind, output_index=len(self.response.output) - 1, **fields)

    def _event(self, kind: str, **fields: Any) -> api.ResponseEvent:
        self.number += 1
        return api.ResponseEvent(type=kind, sequence_number=self.number - 1, **fields)
