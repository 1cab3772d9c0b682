"""Our own routes: models, and what they compute over a text, site by site, for the page and for anyone."""

from __future__ import annotations

import threading

from fastapi import APIRouter, Request
from starlette.responses import Response

from clearhead.api import inspection as looking
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.server.description import MATRIX, OF_A_MODEL
from clearhead.server.disconnect import in_thread, unless_left
from clearhead.server.matrices import choose_slice, send_slice
from clearhead.server.trace_cache import TraceCache


def make_routes(desk: TraceCache) -> APIRouter:
    routes, shelf = APIRouter(prefix="/api", tags=["clearhead"]), desk.shelf

    @routes.post("/tokens", responses=OF_A_MODEL)
    async def tokenize(request: Request, asked: looking.TokensRequest) -> looking.TokensAnswer:
        """A text as the model reads it."""
        tokenizer = shelf.model(asked.model).tokenizer

        def read(_: threading.Event) -> looking.TokensAnswer:
            ids = tokenizer.encode(asked.text)
            return looking.TokensAnswer(ids=ids, tokens=tokenizer.pieces(ids))

        with shelf.reading(asked.model):  # it waits for nobody who looks into a model
            return await unless_left(request, in_thread(read))

    @routes.post("/words", responses=OF_A_MODEL)
    async def spell(request: Request, asked: looking.WordsRequest) -> looking.WordsAnswer:
        """What tokens say."""
        model = shelf.model(asked.model)

        def read(_: threading.Event) -> looking.WordsAnswer:
            if (most := max(asked.ids)) >= model.config.n_vocab:
                raise UserError(f"token {most} does not exist: there are 0 to {model.config.n_vocab - 1}")
            return looking.WordsAnswer(words=model.tokenizer.pieces(asked.ids))

        return await desk.do(request, asked.model, read)

    @routes.post("/trace", responses=OF_A_MODEL)
    async def trace(request: Request, asked: looking.TraceRequest) -> looking.TraceAnswer:
        """What comes next, and the sites that can be asked for."""
        return await desk.do(
            request,
            asked.model,
            lambda left: _describe(desk.trace(asked, left), asked),
        )

    @routes.post("/site", responses=MATRIX)
    async def site(request: Request, asked: looking.SiteRequest) -> Response:
        """What stands at a site, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(left: threading.Event) -> Response:
            trace = desk.trace(asked, left)
            chosen = choose_slice(asked, site_shape(asked.site, trace.config, len(trace)))
            return send_slice(request, chosen, lambda: trace.read(asked.site, chosen.rows, chosen.columns))

        return await desk.do(request, asked.model, read)

    @routes.post("/weight", responses=MATRIX)
    async def weight(request: Request, asked: looking.WeightRequest) -> Response:
        """A weight, or a slice of it: raw float32, or JSON for who accepts that."""

        def read(_: threading.Event) -> Response:
            tensor = shelf.model(asked.model).weight(asked.name)
            chosen = choose_slice(asked, list(tensor.shape))
            return send_slice(request, chosen, lambda: chosen.of(tensor))

        return await desk.do(request, asked.model, read)

    return routes


def _describe(trace: Trace, asked: looking.TraceRequest) -> looking.TraceAnswer:
    assert trace.tokenizer is not None  # it comes from a language model
    logits = trace.read("logits", rows=-1)[0].float()
    best = logits.topk(min(asked.count, len(logits)))
    likeliest = best.indices.tolist()
    numbers = zip(best.values.tolist(), logits.softmax(-1)[best.indices].tolist(), strict=True)
    return looking.TraceAnswer(
        ids=trace.ids[0].tolist(),
        text=trace.tokenizer.decode(trace.ids[0].tolist()),
        tokens=trace.tokens,
        next=[
            looking.NextWord(id=i, text=word, logit=finite(logit), probability=finite(probability))
            for i, word, (logit, probability) in zip(likeliest, trace.words(likeliest), numbers, strict=True)
        ],
        sites=[
            looking.SiteShape(name=str(each), shape=site_shape(str(each), trace.config, len(trace)))
            for each in (all_sites(trace.config) if asked.sites else [])
        ],
    )
