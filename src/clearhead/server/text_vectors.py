"""OpenAI's route for embeddings: a vector for each text."""

from __future__ import annotations

import base64

from fastapi import APIRouter

from clearhead.api import openai
from clearhead.inspect.text_vectors import text_vectors
from clearhead.server.errors import APIError
from clearhead.server.prompts import list_prompts, prompt_ids
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache
from clearhead.text.inputs import check_ids


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["openai"])
    add_query(router, trace_cache, "/embeddings", embed, responses=MODEL_ERRORS)
    return router


def embed(body: openai.EmbeddingRequest, query: Query) -> openai.EmbeddingList:
    """Return a vector of length 1 for each text, from the `final` site."""
    model = query.model(body.model)
    sequences = [prompt_ids(model, text) for text in list_prompts(body.input)]
    for ids in sequences:
        check_ids(ids, model.config.n_vocab)
    vectors = text_vectors(model.network, sequences, body.pooling or "mean", query.check_connected)
    width = vectors.shape[1]
    if body.dimensions not in (None, width):
        message = f"dimensions: not supported unless equal to the model's width, {width}"
        raise APIError(400, "invalid_request", message, "dimensions")
    as_text = body.encoding_format == "base64"
    data = [
        openai.Embedding(
            index=i,
            embedding=base64.b64encode(row.numpy().astype("<f4").tobytes()).decode()
            if as_text
            else row.tolist(),
        )
        for i, row in enumerate(vectors)
    ]
    count = sum(map(len, sequences))
    usage = openai.EmbeddingUsage(prompt_tokens=count, total_tokens=count)
    return openai.EmbeddingList(data=data, model=body.model, usage=usage)
