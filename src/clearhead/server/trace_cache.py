"""The trace_cache at which one looks into models: one at a time, with the last few traces held.

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

from clearhead.api import inspection
from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.inspect.decoders import trace_after
from clearhead.inspect.edits import Edit, Edits
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.errors import APIError
from clearhead.server.model_registry import ModelRegistry

HELD = 4  # traces
WAITING = 32  # requests at a time for what only one can do
NO_EDITS = "[]"
LONGEST = 4096  # tokens of a text, and of all that it is patched from
Result = TypeVar("Result")
Key = tuple[str, tuple[int, ...], str]  # a model, a text, and its edits
Work = Callable[[threading.Event], Result]  # given what is set when the client has left


class TraceCache:
    """One looks at a time: the machine is shared with those who write."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry
        self.traces: OrderedDict[Key, Trace] = OrderedDict()
        self._one = asyncio.Lock()
        self._waiting = 0

    async def run(self, request: Request, name: str, work: Work[Result]) -> Result:
        """What looks into a model, in a thread of its own, one after the other; who leaves is forgotten."""
        if self._waiting >= WAITING:
            raise Busy(f"{self._waiting} requests are waiting already")
        self._waiting += 1

        async def take_turn() -> Result:
            async with self._one:
                return await in_thread(work)

        try:
            with self.registry.reading(name):
                return await until_disconnect(request, take_turn())
        finally:
            self._waiting -= 1

    async def forget(self, name: str) -> None:
        """The traces of a model, which keep it in memory."""
        async with self._one:
            for key in [key for key in self.traces if key[0] == name]:
                del self.traces[key]

    def trace(self, body: inspection.TextRequest, cancelled: threading.Event) -> Trace:
        """The model runs once for the text, once for each that it is patched from, and once for all edits."""
        model = self.registry.model(body.model)
        network = model.transformer("what the explorer shows")

        def watch() -> None:
            raise_if_cancelled(cancelled)

        def plain(ids: list[int]) -> Trace:
            if (given := self.registry.trace(body.model, ids)) is not None:
                return given
            return self._held((body.model, tuple(ids), NO_EDITS), lambda: self._read(model, body, ids, watch))

        def edited() -> Trace:
            others = {text: plain(its) for text, its in _others(body, model).items()}
            made = Edits()
            for edit in body.edits:
                made += Edits.parse({edit.site: _edit(edit, model, others)}, network.config)
            return plain(ids).with_edits(made, watch)

        ids = _ids(model, body.text)
        with torch.no_grad():
            if not body.edits:
                return plain(ids)
            edits = json.dumps([edit.model_dump() for edit in body.edits])
            return self._held((body.model, tuple(ids), edits), edited)

    def _held(self, key: Key, make: Callable[[], Trace]) -> Trace:
        """What was asked for last is held longest."""
        trace = self.traces[key] if key in self.traces else make()
        self.traces[key] = trace
        self.traces.move_to_end(key)
        if len(self.traces) > HELD:
            self.traces.popitem(last=False)
        return trace

    def _read(
        self, model: LanguageModel, body: inspection.TextRequest, ids: list[int], watch: Callable[[], None]
    ) -> Trace:
        before, same = self._most_alike(body.model, ids)
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


def choose_blocks(blocks: tuple[int, int] | None, trace: Trace) -> range:
    """From a first to, and without, a last; all where none are named."""
    first, last = blocks or (0, trace.config.n_block)
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


def _others(body: inspection.TextRequest, model: LanguageModel) -> dict[str, list[int]]:
    """The texts that are patched from, each once, as the model reads them."""
    texts = {edit.text: _ids(model, edit.text) for edit in body.edits if edit.text is not None}
    count, length = len(texts), sum(map(len, texts.values()))
    if count > inspection.MOST_TEXTS:
        what = f"edits patch from {count} texts; at most {inspection.MOST_TEXTS} go"
        raise APIError(400, "too_many_texts", what, "edits", count=count, most=inspection.MOST_TEXTS)
    if length > LONGEST:
        what = f"edits patch from {length} tokens of text; at most {LONGEST} go"
        raise APIError(400, "too_many_tokens", what, "edits", count=length, most=LONGEST)
    return texts


def _edit(body: inspection.EditRequest, model: LanguageModel, others: Mapping[str, Trace]) -> Edit:
    given = [name for name in ("value", "scale", "text") if getattr(body, name) is not None]
    if len(given) != 1:
        raise UserError(f"an edit of {body.site}: give one of value, scale and text")
    if body.text is not None:
        return Edit(others[body.text], at=body.at, columns=body.columns)
    if body.scale is not None:
        factor = body.scale
        return Edit(lambda tensor: tensor * factor, at=body.at, columns=body.columns)
    value = body.value
    if not isinstance(value, list):
        assert value is not None
        return Edit(value, at=body.at, columns=body.columns)
    try:
        return Edit(torch.tensor(value, device=model.device), at=body.at, columns=body.columns)
    except ValueError:
        raise UserError(f"an edit of {body.site}: its rows are not equally long") from None
