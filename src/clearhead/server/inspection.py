"""Our own routes: models, and what they compute over a text, site by site, for the page and for anyone.

A trace keeps the residual stream alone; the last few are held, so that asking for one site after another of
the same text runs the model once.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response
from torch import Tensor

from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.inspect.edits import Edit, Edits
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.description import MATRIX, OF_A_MODEL
from clearhead.server.faults import Refused
from clearhead.server.leaving import Left, in_thread, unless_left
from clearhead.server.shelf import Served, Shelf
from clearhead.views import wire

HELD = 4  # traces
WAITING = 32  # requests at a time for what only one can do
LONGEST = 4096  # tokens of a text, and of all that it is patched from
Answer = TypeVar("Answer")
Work = Callable[[threading.Event], Answer]  # given what is set when the client has left


class Desk:
    """One looks at a time: the machine is shared with those who write."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.traces: OrderedDict[Any, Trace] = OrderedDict()
        self._one = asyncio.Lock()
        self._waiting = 0

    async def do(self, request: Request, work: Work[Answer]) -> Answer:
        """In a thread of its own, one after the other; who leaves is forgotten."""
        if self._waiting >= WAITING:
            raise Busy(f"{self._waiting} requests are waiting already")
        self._waiting += 1

        async def take_turn() -> Answer:
            async with self._one:
                return await in_thread(work)

        try:
            return await unless_left(request, take_turn())
        finally:
            self._waiting -= 1

    def trace(self, asked: wire.TraceRequest, left: threading.Event) -> Trace:
        """The model runs once for the text, once for each that it is patched from, and once for all edits."""
        model = self.shelf.model(asked.model)
        ids = _ids(model, asked.text)
        edits = [edit.model_dump() for edit in asked.edits]
        key = (asked.model, tuple(ids), json.dumps(edits))
        if key in self.traces:
            self.traces.move_to_end(key)
            return self.traces[key]

        def run(ids: list[int]) -> Trace:
            if left.is_set():
                raise Left
            return model.inspect(ids)

        with torch.no_grad():
            others = {text: run(its) for text, its in _others(asked, model).items()}
            trace = run(ids)
            if asked.edits:
                made = Edits()
                for edit in asked.edits:
                    made += Edits.parse({edit.site: _edit(edit, model, others)}, model.config)
                trace = trace.edit_more(made)
        self.traces[key] = trace
        if len(self.traces) > HELD:
            self.traces.popitem(last=False)
        return trace


def make_routes(shelf: Shelf) -> APIRouter:
    routes, desk = APIRouter(prefix="/api", tags=["clearhead"]), Desk(shelf)

    @routes.get("/models")
    async def list_models() -> wire.ModelDetailsList:
        """Every model that was asked for at the start, also those that could not be loaded."""
        return wire.ModelDetailsList(models=[_details(each) for each in shelf])

    @routes.post("/tokens", responses=OF_A_MODEL)
    async def tokenize(request: Request, asked: wire.TokensRequest) -> wire.TokensAnswer:
        """A text as the model reads it."""
        tokenizer = shelf.model(asked.model).tokenizer

        def read(_: threading.Event) -> wire.TokensAnswer:
            ids = tokenizer.encode(asked.text)
            return wire.TokensAnswer(ids=ids, tokens=tokenizer.pieces(ids))

        return await desk.do(request, read)

    @routes.post("/trace", responses=OF_A_MODEL)
    async def trace(request: Request, asked: wire.TraceRequest) -> wire.TraceAnswer:
        """What comes next, and the sites that can be asked for."""
        return await desk.do(request, lambda left: _describe(desk.trace(asked, left), asked.count))

    @routes.post("/site", responses=MATRIX)
    async def site(request: Request, asked: wire.SiteRequest) -> Response:
        """What stands at a site, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(left: threading.Event) -> Response:
            trace = desk.trace(asked, left)
            whole = site_shape(asked.site, trace.config, len(trace))
            rows, columns = _choices(asked, whole, _in_json(request))
            return _matrix(trace.read(asked.site, rows, columns), _in_json(request))

        return await desk.do(request, read)

    @routes.post("/weight", responses=MATRIX)
    async def weight(request: Request, asked: wire.WeightRequest) -> Response:
        """A weight, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(_: threading.Event) -> Response:
            tensor = shelf.model(asked.model).weight(asked.name)
            rows, columns = _choices(asked, list(tensor.shape), _in_json(request))
            tensor = tensor if rows is None else tensor[rows]
            return _matrix(tensor if columns is None else tensor[..., columns], _in_json(request))

        return await desk.do(request, read)

    return routes


def _details(served: Served) -> wire.ModelDetails:
    model = served.model
    if model is None:
        # Why is for the server's own output: it may name folders.
        return wire.ModelDetails(name=served.name, error="could not be loaded")
    return wire.ModelDetails(
        name=served.name,
        parameters=model.config.n_parameter,
        config=model.config.to_json(),
        tokenizer=model.tokenizer.kind,
        chats=isinstance(model.tokenizer.config.get("chat_template"), str),
    )


def _ids(model: LanguageModel, text: str | list[int]) -> list[int]:
    tokenizer = model.tokenizer
    ids = tokenizer.start_ids + tokenizer.encode(text) if isinstance(text, str) else text
    most = min(model.config.n_context, LONGEST)
    if not ids:
        raise UserError("the text is empty: expected at least one character")
    if len(ids) > most:
        raise Refused(
            400, "context_length_exceeded", f"the text has {len(ids)} tokens; at most {most} go", "text"
        )
    return ids


def _others(asked: wire.TraceRequest, model: LanguageModel) -> dict[str, list[int]]:
    """The texts that are patched from, each once, as the model reads them."""
    texts = {edit.text: _ids(model, edit.text) for edit in asked.edits if edit.text is not None}
    count, length = len(texts), sum(map(len, texts.values()))
    if count > wire.MOST_TEXTS:
        raise Refused(
            400, "too_many", f"edits patch from {count} texts; at most {wire.MOST_TEXTS} go", "edits"
        )
    if length > LONGEST:
        raise Refused(
            400, "too_large", f"edits patch from {length} tokens of text; at most {LONGEST} go", "edits"
        )
    return texts


def _edit(asked: wire.EditRequest, model: LanguageModel, others: Mapping[str, Trace]) -> Edit:
    given = [name for name in ("value", "scale", "text") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise UserError(f"an edit of {asked.site}: give one of value, scale and text")
    if asked.text is not None:
        return Edit(others[asked.text], at=asked.at)
    if asked.scale is not None:
        factor = asked.scale
        return Edit(lambda tensor: tensor * factor, at=asked.at)
    value = asked.value
    if not isinstance(value, list):
        assert value is not None
        return Edit(value, at=asked.at)
    try:
        return Edit(torch.tensor(value, device=model.device), at=asked.at)
    except ValueError:
        raise UserError(f"an edit of {asked.site}: its rows are not equally long") from None


def _describe(trace: Trace, count: int) -> wire.TraceAnswer:
    logits = trace.read("logits", rows=-1)[0].float()
    probabilities = logits.softmax(-1)
    likeliest = logits.topk(min(count, len(logits))).indices.tolist()
    words = trace.words(likeliest)
    return wire.TraceAnswer(
        ids=trace.ids[0].tolist(),
        tokens=trace.tokens,
        next=[
            wire.NextWord(id=i, text=word, logit=_finite(logits[i]), probability=_finite(probabilities[i]))
            for i, word in zip(likeliest, words, strict=True)
        ],
        sites=[
            wire.SiteShape(name=str(each), shape=site_shape(str(each), trace.config, len(trace)))
            for each in all_sites(trace.config)
        ],
    )


def _choices(asked: wire.Slice, shape: list[int], in_json: bool) -> tuple[list[int] | None, list[int] | None]:
    """The rows and columns that are asked for, checked before anything is computed."""
    rows = _range(asked.rows, shape[0], "rows")
    columns = _range(asked.columns, shape[-1], "columns") if len(shape) > 1 else None
    if len(shape) == 1 and asked.columns is not None:
        raise UserError("there are no columns: it is a number for each row")
    sizes = [shape[0] if rows is None else len(rows), *shape[1:-1]]
    if len(shape) > 1:
        sizes.append(shape[-1] if columns is None else len(columns))
    count, most = math.prod(sizes), wire.MOST_JSON if in_json else wire.MOST_VALUES
    if count > most:
        raise Refused(400, "too_large", f"{count:,} numbers are more than {most:,}: ask for a slice")
    return rows, columns


def _range(given: tuple[int, int] | None, count: int, what: str) -> list[int] | None:
    if given is None:
        return None
    first, last = given
    if not 0 <= first < last <= count:
        raise UserError(
            f"{what} {first} to {last}: expected a first one below a last one, within 0 to {count}"
        )
    return list(range(first, last))


def _in_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _matrix(tensor: Tensor, in_json: bool) -> Response:
    tensor = tensor.detach().to(torch.float32).cpu().contiguous()
    shape = list(tensor.shape)
    if in_json:
        return JSONResponse({"shape": shape, "values": _nulls(tensor.tolist())})
    body = tensor.numpy().astype("<f4", copy=False).tobytes()
    return Response(
        body, media_type="application/octet-stream", headers={"X-Shape": ",".join(map(str, shape))}
    )


def _nulls(values: Any) -> Any:
    if isinstance(values, list):
        return [_nulls(each) for each in values]
    return values if math.isfinite(values) else None


def _finite(number: Tensor) -> float | None:
    return number.item() if number.isfinite() else None
