"""The routes for what the page first shows about a model: texts to try, and the text and head to start with."""

from __future__ import annotations

from fastapi import APIRouter

from clearhead.api import models as api
from clearhead.labs.opening import find_opening
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache
from clearhead.text.examples import examples_for, pairs_for, word_example_for


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])
    add_query(router, trace_cache, "/examples", examples, responses=MODEL_ERRORS, exclusive=False)
    add_query(router, trace_cache, "/opening", opening, responses=MODEL_ERRORS)
    return router


def examples(body: api.ExamplesRequest, query: Query) -> api.ExamplesResponse:
    """Return texts to try the model on, in the form its tokenizer encodes best."""
    model = query.model(body.model)
    tokenizer = model.tokenizer
    most = model.config.n_context - len(tokenizer.start_ids)
    example = word_example_for(tokenizer, most)
    senses = None
    if example is not None:
        senses = api.WordSentences(word=example.word, sentences=list(example.sentences))
    return api.ExamplesResponse(
        texts=examples_for(tokenizer, most),
        pairs=pairs_for(tokenizer, most),
        senses=senses,
    )


def opening(body: api.OpeningRequest, query: Query) -> api.OpeningResponse:
    """Return a text that has one token per word and an uncertain continuation, and a head to look at."""
    found = find_opening(query.model(body.model), query.check_connected)
    return api.OpeningResponse(
        text=found.text,
        position=found.row,
        block=found.block,
        head=found.head,
        role=found.role,
        weight=found.weight,
    )
