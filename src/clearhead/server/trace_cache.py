"""Recent traces, and the queue of requests that inspect models, one at a time.

A trace keeps only the residual stream, so requests for several sites of one text run the model once.
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
from clearhead.server.lesson_cache import LessonCache
from clearhead.server.model_registry import ModelRegistry

MAX_TRACES = 4
MAX_WAITING = 32  # requests
MAX_TOKENS = 4096  # in a text, and in total in the texts that its edits patch from
NO_EDITS = "[]"
T = TypeVar("T")
Key = tuple[str, tuple[int, ...], str]  # a model, token ids, and edits as JSON


class TraceCache:
    """The most recently used traces. Requests run one at a time, because generation shares the machine."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry
        self.traces: OrderedDict[Key, Trace] = OrderedDict()
        self.lessons = LessonCache()
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def run(self, request: Request, work: Callable[[threading.Event], T]) -> T:
        """Run `work` in a worker thread when its turn comes; drop it if the client disconnects."""
        if self._waiting >= MAX_WAITING:
            raise Busy(f"{self._waiting} requests are already waiting")
        self._waiting += 1

        async def take_turn() -> T:
            async with self._lock:
                return await in_thread(work)

        try:
            return await until_disconnect(request, take_turn())
        finally:
            self._waiting -= 1

    async def discard(self, name: str) -> None:
        """Drop the traces and lessons of a model: they keep its weights in memory."""
        async with self._lock:
            self.lessons.discard(name)
            for key in [key for key in self.traces if key[0] == name]:
                del self.traces[key]

    def trace(self, body: inspection.TextRequest, cancelled: threading.Event) -> Trace:
        """Return the trace of a text with its edits, from the cache if possible.

        Otherwise, the model runs once for the text, once for each text that an edit patches from, and once for all
        edits.
        """
        model = self.registry.model(body.model)
        network = model.transformer("the explorer")

        def watch() -> None:
            raise_if_cancelled(cancelled)

        def unedited(ids: list[int]) -> Trace:
            if (given := self.registry.trace(body.model, ids)) is not None:
                return given
            key = (body.model, tuple(ids), NO_EDITS)
            return self._get(key, lambda: self._inspect(model, body.model, ids, watch))

        def edited() -> Trace:
            sources = {text: unedited(its_ids) for text, its_ids in _patch_sources(body, model).items()}
            edits = Edits()
            for edit in body.edits:
                edits += Edits.parse({edit.site: _parse_edit(edit, model, sources)}, network.config)
            return unedited(ids).with_edits(edits, watch)

        ids = encode(model, body.text)
        with torch.no_grad():
            if not body.edits:
                return unedited(ids)
            edits_key = json.dumps([edit.model_dump() for edit in body.edits])
            return self._get((body.model, tuple(ids), edits_key), edited)

    def _get(self, key: Key, make: Callable[[], Trace]) -> Trace:
        """Return the cached trace or make it, and evict the least recently used one if there are too many."""
        trace = self.traces[key] if key in self.traces else make()
        self.traces[key] = trace
        self.traces.move_to_end(key)
        if len(self.traces) > MAX_TRACES:
            self.traces.popitem(last=False)
        return trace

    def _inspect(self, model: LanguageModel, name: str, ids: list[int], watch: Callable[[], None]) -> Trace:
        """Run the model, reusing the cached trace with the longest common prefix."""
        prefix, length = self._longest_prefix(name, ids)
        if prefix is None:
            return need_heads(model.inspect(ids, watch=watch), "the explorer")
        return trace_after(prefix, ids, length, watch)

    def _longest_prefix(self, name: str, ids: list[int]) -> tuple[Trace | None, int]:
        """Return the cached trace that shares the most leading tokens with `ids`, and how many.

        Typing and generating change a text at its end.
        """
        best: tuple[Trace | None, int] = (None, 0)
        for (model, cached, edits), trace in self.traces.items():
            if model == name and edits == NO_EDITS and trace.config.causal:
                pairs = zip(cached, ids[:-1], strict=False)  # at least one token must be run
                same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                if same > best[1]:
                    best = (trace, same)
        return best


def choose_blocks(blocks: tuple[int, int] | None, trace: Trace) -> range:
    """Return the range of blocks, start inclusive and stop exclusive; all blocks for None."""
    start, stop = blocks or (0, trace.config.n_block)
    if not 0 <= start < stop <= trace.config.n_block:
        raise UserError(f"blocks {start} to {stop}: expected 0 <= start < stop <= {trace.config.n_block}")
    return range(start, stop)


def encode(model: LanguageModel, text: str | list[int]) -> list[int]:
    """The token ids of a text, which must fit into the context."""
    tokenizer = model.tokenizer
    ids = tokenizer.start_ids + tokenizer.encode(text) if isinstance(text, str) else text
    limit = min(model.config.n_context, MAX_TOKENS)
    if not ids:
        raise UserError("the text is empty: expected at least one character", "text_empty")
    if len(ids) > limit:
        message = f"the text has {len(ids)} tokens; the limit is {limit}"
        raise APIError(400, "context_length_exceeded", message, "text", count=len(ids), most=limit)
    return ids


def _patch_sources(body: inspection.TextRequest, model: LanguageModel) -> dict[str, list[int]]:
    """Return the distinct texts that edits patch from, with their token ids."""
    texts = {edit.text: encode(model, edit.text) for edit in body.edits if edit.text is not None}
    count, length = len(texts), sum(map(len, texts.values()))
    if count > inspection.MAX_TEXTS:
        message = f"the edits patch from {count} texts; the limit is {inspection.MAX_TEXTS}"
        raise APIError(400, "too_many_texts", message, "edits", count=count, most=inspection.MAX_TEXTS)
    if length > MAX_TOKENS:
        message = f"the edits patch from texts with {length} tokens; the limit is {MAX_TOKENS}"
        raise APIError(400, "too_many_tokens", message, "edits", count=length, most=MAX_TOKENS)
    return texts


def _parse_edit(body: inspection.EditRequest, model: LanguageModel, sources: Mapping[str, Trace]) -> Edit:
    given = [name for name in ("value", "scale", "text") if getattr(body, name) is not None]
    if len(given) != 1:
        raise UserError(f"edit of {body.site}: expected exactly one of value, scale and text")
    if body.text is not None:
        return Edit(sources[body.text], at=body.at, columns=body.columns)
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
        raise UserError(f"edit of {body.site}: expected rows of equal length") from None
