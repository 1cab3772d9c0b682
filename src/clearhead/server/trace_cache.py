"""The desk at which one looks into models: one at a time, with the last few traces held.

A trace keeps the residual stream alone; so asking for one site after another of the same text runs the model
once.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TypeVar

import torch
from fastapi import Request

from clearhead.api import inspection as looking
from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.inspect.edits import Edit, Edits
from clearhead.inspect.readers import trace_after
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread, stop_if, unless_left
from clearhead.server.errors import APIError
from clearhead.server.model_registry import ModelRegistry

HELD = 4  # traces
WAITING = 32  # requests at a time for what only one can do
NO_EDITS = "[]"
LONGEST = 4096  # tokens of a text, and of all that it is patched from
Answer = TypeVar("Answer")
Key = tuple[str, tuple[int, ...], str]  # a model, a text, and its edits
Work = Callable[[threading.Event], Answer]  # given what is set when the client has left


class TraceCache:
    """One looks at a time: the machine is shared with those who write."""

    def __init__(self, shelf: ModelRegistry) -> None:
        self.shelf = shelf
        self.traces: OrderedDict[Key, Trace] = OrderedDict()
        self._one = asyncio.Lock()
        self._waiting = 0

    async def do(self, request: Request, name: str, work: Work[Answer]) -> Answer:
        """What looks into a model, in a thread of its own, one after the other; who leaves is forgotten."""
        if self._waiting >= WAITING:
            raise Busy(f"{self._waiting} requests are waiting already")
        self._waiting += 1

        async def take_turn() -> Answer:
            async with self._one:
                return await in_thread(work)

        try:
            with self.shelf.reading(name):
                return await unless_left(request, take_turn())
        finally:
            self._waiting -= 1

    async def forget(self, name: str) -> None:
        """The traces of a model, which keep it in memory."""
        async with self._one:
            for key in [key for key in self.traces if key[0] == name]:
                del self.traces[key]

    def trace(self, asked: looking.TextRequest, left: threading.Event) -> Trace:
        """The model runs once for the text, once for each that it is patched from, and once for all edits."""
        model = self.shelf.model(asked.model)
        network = model.transformer("what the explorer shows")

        def watch() -> None:
            stop_if(left)

        def plain(ids: list[int]) -> Trace:
            if (given := self.shelf.trace(asked.model, ids)) is not None:
                return given
            return self._held(
                (asked.model, tuple(ids), NO_EDITS), lambda: self._read(model, asked, ids, watch)
            )

        def edited() -> Trace:
            others = {text: plain(its) for text, its in _others(asked, model).items()}
            made = Edits()
            for edit in asked.edits:
                made += Edits.parse({edit.site: _edit(edit, model, others)}, network.config)
            return plain(ids).edit_more(made, watch)

        ids = _ids(model, asked.text)
        with torch.no_grad():
            if not asked.edits:
                return plain(ids)
            edits = json.dumps([edit.model_dump() for edit in asked.edits])
            return self._held((asked.model, tuple(ids), edits), edited)

    def _held(self, key: Key, make: Callable[[], Trace]) -> Trace:
        """What was asked for last is held longest."""
        trace = self.traces[key] if key in self.traces else make()
        self.traces[key] = trace
        self.traces.move_to_end(key)
        if len(self.traces) > HELD:
            self.traces.popitem(last=False)
        return trace

    def _read(
        self, model: LanguageModel, asked: looking.TextRequest, ids: list[int], watch: Callable[[], None]
    ) -> Trace:
        before, same = self._most_alike(asked.model, ids)
        if before is None:
            return need_heads(model.inspect(ids, watch=watch), "a trace")
        return trace_after(before, ids, same, watch)

    def _most_alike(self, name: str, ids: list[int]) -> tuple[Trace | None, int]:
        """Of the texts read last, the one that begins most like this one, and how many tokens are the same.

        Who types, or lets the model write, changes a text at its end.
        """
        best: tuple[Trace | None, int] = (None, 0)
        for (model, known, edits), trace in self.traces.items():
            if model == name and edits == NO_EDITS and trace.config.causal:
                pairs = zip(known, ids[:-1], strict=False)  # one is left to be read
                same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                if same > best[1]:
                    best = (trace, same)
        return best


def choose_blocks(asked: tuple[int, int] | None, trace: Trace) -> range:
    """From a first to, and without, a last; all where none are named."""
    first, last = asked or (0, trace.config.n_block)
    if not 0 <= first < last <= trace.config.n_block:
        raise UserError(f"blocks {first} to {last}: expected some within 0 to {trace.config.n_block}")
    return range(first, last)


def _ids(model: LanguageModel, text: str | list[int]) -> list[int]:
    tokenizer = model.tokenizer
    ids = tokenizer.start_ids + tokenizer.encode(text) if isinstance(text, str) else text
    most = min(model.config.n_context, LONGEST)
    if not ids:
        raise UserError("the text is empty: expected at least one character", "text_empty")
    if len(ids) > most:
        what = f"the text has {len(ids)} tokens; at most {most} go"
        raise APIError(400, "context_length_exceeded", what, "text", count=len(ids), most=most)
    return ids


def _others(asked: looking.TextRequest, model: LanguageModel) -> dict[str, list[int]]:
    """The texts that are patched from, each once, as the model reads them."""
    texts = {edit.text: _ids(model, edit.text) for edit in asked.edits if edit.text is not None}
    count, length = len(texts), sum(map(len, texts.values()))
    if count > looking.MOST_TEXTS:
        what = f"edits patch from {count} texts; at most {looking.MOST_TEXTS} go"
        raise APIError(400, "too_many_texts", what, "edits", count=count, most=looking.MOST_TEXTS)
    if length > LONGEST:
        what = f"edits patch from {length} tokens of text; at most {LONGEST} go"
        raise APIError(400, "too_many_tokens", what, "edits", count=length, most=LONGEST)
    return texts


def _edit(asked: looking.EditRequest, model: LanguageModel, others: Mapping[str, Trace]) -> Edit:
    given = [name for name in ("value", "scale", "text") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise UserError(f"an edit of {asked.site}: give one of value, scale and text")
    if asked.text is not None:
        return Edit(others[asked.text], at=asked.at, columns=asked.columns)
    if asked.scale is not None:
        factor = asked.scale
        return Edit(lambda tensor: tensor * factor, at=asked.at, columns=asked.columns)
    value = asked.value
    if not isinstance(value, list):
        assert value is not None
        return Edit(value, at=asked.at, columns=asked.columns)
    try:
        return Edit(torch.tensor(value, device=model.device), at=asked.at, columns=asked.columns)
    except ValueError:
        raise UserError(f"an edit of {asked.site}: its rows are not equally long") from None
