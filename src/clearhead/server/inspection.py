"""Our own routes: models, and what they compute over a text, site by site, for the page and for anyone."""

from __future__ import annotations

import threading

from fastapi import APIRouter, Request
from starlette.responses import Response

from clearhead.api import inspection
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.server.disconnect import in_thread, until_disconnect
from clearhead.server.matrices import parse_slice, slice_response
from clearhead.server.responses import MATRIX, OF_A_MODEL
from clearhead.server.trace_cache import TraceCache


def make_router(trace_cache: TraceCache) -> APIRouter:
    router, registry = APIRouter(prefix="/api", tags=["clearhead"]), trace_cache.registry

    @router.post("/tokens", responses=OF_A_MODEL)
    async def tokenize(request: Request, body: inspection.TokensRequest) -> inspection.TokensAnswer:
        """A text as the model reads it."""
        tokenizer = registry.model(body.model).tokenizer

        def read(_: threading.Event) -> inspection.TokensAnswer:
            ids = tokenizer.encode(body.text)
            return inspection.TokensAnswer(ids=ids, tokens=tokenizer.pieces(ids))

        with registry.reading(body.model):  # it waits for nobody who looks into a model
            return await until_disconnect(request, in_thread(read))

    @router.post("/words", responses=OF_A_MODEL)
    async def spell(request: Request, body: inspection.WordsRequest) -> inspection.WordsAnswer:
        """What tokens say."""
        model = registry.model(body.model)

        def read(_: threading.Event) -> inspection.WordsAnswer:
            if (most := max(body.ids)) >= model.config.n_vocab:
                raise UserError(f"token {most} does not exist: there are 0 to {model.config.n_vocab - 1}")
            return inspection.WordsAnswer(words=model.tokenizer.pieces(body.ids))

        return await trace_cache.run(request, body.model, read)

    @router.post("/trace", responses=OF_A_MODEL)
    async def trace(request: Request, body: inspection.TraceRequest) -> inspection.TraceAnswer:
        """What comes next, and the sites that can be asked for."""
        return await trace_cache.run(
            request,
            body.model,
            lambda cancelled: _describe(trace_cache.trace(body, cancelled), body),
        )

    @router.post("/site", responses=MATRIX)
    async def site(request: Request, body: inspection.SiteRequest) -> Response:
        """What stands at a site, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(cancelled: threading.Event) -> Response:
            trace = trace_cache.trace(body, cancelled)
            chosen = parse_slice(body, site_shape(body.site, trace.config, len(trace)))
            return slice_response(request, chosen, lambda: trace.read(body.site, chosen.rows, chosen.columns))

        return await trace_cache.run(request, body.model, read)

    @router.post("/weight", responses=MATRIX)
    async def weight(request: Request, body: inspection.WeightRequest) -> Response:
        """A weight, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(_: threading.Event) -> Response:
            tensor = registry.model(body.model).weight(body.name)
            chosen = parse_slice(body, list(tensor.shape))
            return slice_response(request, chosen, lambda: chosen.of(tensor))

        return await trace_cache.run(request, body.model, read)

    return router


def _describe(trace: Trace, body: inspection.TraceRequest) -> inspection.TraceAnswer:
    assert trace.tokenizer is not None  # it comes from a language model
    logits = trace.read("logits", rows=-1)[0].float()
    best = logits.topk(min(body.count, len(logits)))
    likeliest = best.indices.tolist()
    numbers = zip(best.values.tolist(), logits.softmax(-1)[best.indices].tolist(), strict=True)
    return inspection.TraceAnswer(
        ids=trace.ids[0].tolist(),
        text=trace.tokenizer.decode(trace.ids[0].tolist()),
        tokens=trace.tokens,
        next=[
            inspection.NextWord(id=i, text=word, logit=finite(logit), probability=finite(probability))
            for i, word, (logit, probability) in zip(
                likeliest, trace.token_texts(likeliest), numbers, strict=True
            )
        ],
        sites=[
            inspection.SiteShape(name=str(each), shape=site_shape(str(each), trace.config, len(trace)))
            for each in (all_sites(trace.config) if body.sites else [])
        ],
    )
