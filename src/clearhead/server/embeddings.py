"""The routes for word vectors: the senses of a word in many sentences, and the nearest neighbors of a vector."""

from __future__ import annotations

from fastapi import APIRouter

from clearhead.api import embeddings as api
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.base_trace import stages
from clearhead.inspect.word_senses import map_senses
from clearhead.inspect.word_senses import neighbors as find_neighbors
from clearhead.server.errors import APIError
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])
    add_query(router, trace_cache, "/senses", senses, responses=MODEL_ERRORS)
    add_query(router, trace_cache, "/neighbors", neighbors, responses=MODEL_ERRORS)
    return router


def senses(body: api.SensesRequest, query: Query) -> api.SensesResponse:
    """Project the vectors of one word in many sentences onto a plane, at every stage of the model."""
    model = query.model(body.model)
    sentences = [model.tokenizer.start_ids + model.tokenizer.encode(text) for text in body.sentences]
    count = sum(map(len, sentences))
    if count > (limit := api.MAX_SENTENCE_TOKENS):
        message = f"the sentences have {count} tokens; the limit is {limit}"
        raise APIError(400, "too_many_tokens", message, "sentences", count=count, most=limit)
    traces, numbers = [], []
    for number, ids in enumerate(sentences):
        if ids:
            traces.append(model.inspect(ids, watch=query.check_connected))
            numbers.append(number)
    if not traces:
        raise UserError("the sentences are empty: expected at least one character", "text_empty")
    result = map_senses(traces, body.word)
    return api.SensesResponse(
        stages=stages(traces[0].config),
        occurrences=[
            api.Occurrence(sentence=numbers[i], position=position, piece=traces[i].pieces[0][position])
            for i, position in result.places
        ],
        points=result.points.tolist(),
        shares=result.shares.tolist(),
        cosines=result.cosines.tolist(),
    )


def neighbors(body: api.NeighborsRequest, query: Query) -> api.NeighborsResponse:
    """Return the tokens whose embeddings are nearest to the vector at a position."""
    trace = query.trace(body)
    if body.stage not in stages(trace.config):
        raise UserError(f"stage {body.stage!r}: expected embedding, block.0.input, …, or final")
    vector = trace.read(body.stage, rows=trace.check_position(body.position))[0]
    if body.along is not None:
        matrix = trace.network.unembedding if body.stage == "final" else trace.network.embedding
        start, end = trace.token_id(body.along.start), trace.token_id(body.along.end)
        vector = vector + matrix.weight[end] - matrix.weight[start]
    nearest = find_neighbors(trace, vector, body.stage, body.count)
    texts = trace.token_texts([i for i, _ in nearest])
    return api.NeighborsResponse(
        neighbors=[
            api.Neighbor(id=i, text=text, cosine=finite(cosine))
            for (i, cosine), text in zip(nearest, texts, strict=True)
        ]
    )
