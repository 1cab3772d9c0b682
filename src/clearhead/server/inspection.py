"""Our own routes: models, and what they compute over a text, site by site, for the page and for anyone.

A trace keeps the residual stream alone; the last few are held, so that asking for one site after another of
the same text runs the model once.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from torch import Tensor

from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.inspect.edits import Edit
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.faults import Refused
from clearhead.server.leaving import unless_left
from clearhead.server.shelf import Served, Shelf
from clearhead.views import wire

HELD = 4  # traces
WAITING = 32  # requests at a time for what only one can do
LONGEST = 4096  # tokens of a text
MATRIX: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Little-endian float32, row after row; the shape in X-Shape. As JSON where asked for.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {"X-Shape": {"schema": {"type": "string"}, "description": "Such as 12,64."}},
    }
}
Answer = TypeVar("Answer")


class Desk:
    """One looks at a time: the machine is shared with those who write."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.traces: OrderedDict[Any, Trace] = OrderedDict()
        self._one = asyncio.Lock()
        self._waiting = 0

    async def do(self, request: Request, work: Callable[[], Answer]) -> Answer:
        """In a thread of its own, one after the other; who leaves while waiting is forgotten."""
        if self._waiting >= WAITING:
            raise Busy(f"{self._waiting} requests are waiting already")
        self._waiting += 1

        async def take_turn() -> Answer:
            async with self._one:
                return await run_in_threadpool(work)

        try:
            return await unless_left(request, take_turn())
        finally:
            self._waiting -= 1

    def trace(self, asked: wire.TraceRequest) -> Trace:
        model = self.shelf.model(asked.model)
        ids = _ids(model, asked.text)
        edits = [edit.model_dump() for edit in asked.edits]
        key = (asked.model, tuple(ids), json.dumps(edits))
        if key in self.traces:
            self.traces.move_to_end(key)
            return self.traces[key]
        with torch.no_grad():
            trace = model.inspect(ids)
            for edit in asked.edits:
                trace = trace.edit({edit.site: _edit(edit, model)})
        self.traces[key] = trace
        if len(self.traces) > HELD:
            self.traces.popitem(last=False)
        return trace


def make_routes(shelf: Shelf) -> APIRouter:
    routes, desk = APIRouter(prefix="/api", tags=["clearhead"]), Desk(shelf)

    @routes.get("/models")
    def list_models() -> wire.ModelDetailsList:
        """Every model that was asked for at the start, also those that could not be loaded."""
        return wire.ModelDetailsList(models=[_details(each) for each in shelf])

    @routes.post("/tokens")
    async def tokenize(request: Request, asked: wire.TokensRequest) -> wire.TokensAnswer:
        """A text as the model reads it."""
        tokenizer = shelf.model(asked.model).tokenizer

        def read() -> wire.TokensAnswer:
            ids = tokenizer.encode(asked.text)
            return wire.TokensAnswer(ids=ids, tokens=tokenizer.pieces(ids))

        return await desk.do(request, read)

    @routes.post("/trace")
    async def trace(request: Request, asked: wire.TraceRequest) -> wire.TraceAnswer:
        """What comes next, and the sites that can be asked for."""
        return await desk.do(request, lambda: _describe(desk.trace(asked), asked.count))

    @routes.post("/site", responses=MATRIX)
    async def site(request: Request, asked: wire.SiteRequest) -> Response:
        """What stands at a site, or a slice of it."""

        def read() -> Response:
            trace = desk.trace(asked)
            whole = site_shape(asked.site, trace.config, len(trace))
            rows, columns = _choices(asked, whole, _in_json(request))
            return _matrix(trace.read(asked.site, rows, columns), _in_json(request))

        return await desk.do(request, read)

    @routes.post("/weight", responses=MATRIX)
    async def weight(request: Request, asked: wire.WeightRequest) -> Response:
        """A weight, or a slice of it."""

        def read() -> Response:
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


def _edit(asked: wire.EditRequest, model: LanguageModel) -> Edit:
    given = [name for name in ("value", "scale", "text") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise UserError(f"an edit of {asked.site}: give one of value, scale and text")
    if asked.text is not None:
        with torch.no_grad():
            return Edit(model.inspect(_ids(model, asked.text)), at=asked.at)
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
