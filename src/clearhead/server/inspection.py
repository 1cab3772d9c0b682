"""The routes that return what a model computes over a text: tokens, sites, weights and overviews."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from fastapi import APIRouter
from starlette.responses import Response
from torch import Tensor

from clearhead.api import inspection as api
from clearhead.errors import UserError
from clearhead.figures.pooling import pool_weights
from clearhead.finite import finite
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.matrices import (
    RawResponse,
    TensorSlice,
    check_size,
    matrices_response,
    parse_slice,
    slice_response,
)
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MATRICES, MATRIX, MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache, choose_blocks


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])
    # Tokenizing is cheap, and does not wait for queries that run a model.
    add_query(router, trace_cache, "/tokens", tokenize, responses=MODEL_ERRORS, exclusive=False)
    add_query(router, trace_cache, "/token_texts", spell, responses=MODEL_ERRORS)
    add_query(router, trace_cache, "/trace", trace, responses=MODEL_ERRORS)
    add_query(router, trace_cache, "/site", site, responses=MATRIX)
    add_query(router, trace_cache, "/weight", weight, responses=MATRIX)
    for path, answer in (("/sites", sites), ("/patterns", patterns), ("/streams", streams)):
        add_query(router, trace_cache, path, answer, response_class=RawResponse, responses=MATRICES)
    return router


def tokenize(body: api.TokensRequest, query: Query) -> api.TokensResponse:
    """Return the tokens of a text."""
    tokenizer = query.model(body.model).tokenizer
    ids = tokenizer.encode(body.text)
    return api.TokensResponse(ids=ids, tokens=tokenizer.pieces(ids))


def spell(body: api.TokenTextsRequest, query: Query) -> api.TokenTextsResponse:
    """Return the text of each token id."""
    model = query.model(body.model)
    if (largest := max(body.ids)) >= model.config.n_vocab:
        raise UserError(
            f"token {largest} does not exist: expected an id from 0 to {model.config.n_vocab - 1}"
        )
    return api.TokenTextsResponse(tokens=model.tokenizer.pieces(body.ids))


def trace(body: api.TraceRequest, query: Query) -> api.TraceResponse:
    """Return the most likely next tokens, and the sites that can be requested."""
    trace = query.trace(body)
    assert trace.tokenizer is not None  # every trace here comes from a language model
    logits = trace.read("logits", rows=-1)[0].float()
    best = logits.topk(min(body.count, len(logits)))
    ids = best.indices.tolist()
    values = zip(best.values.tolist(), logits.softmax(-1)[best.indices].tolist(), strict=True)
    return api.TraceResponse(
        ids=trace.ids[0].tolist(),
        text=trace.tokenizer.decode(trace.ids[0].tolist()),
        tokens=trace.tokens,
        next=[
            api.NextToken(id=i, text=text, logit=finite(logit), probability=finite(probability))
            for i, text, (logit, probability) in zip(ids, trace.token_texts(ids), values, strict=True)
        ],
        sites=[
            api.SiteShape(name=str(name), shape=site_shape(str(name), trace.config, len(trace)))
            for name in (all_sites(trace.config) if body.sites else [])
        ],
    )


def site(body: api.SiteRequest, query: Query) -> Response:
    """Return the value of a site, or a slice of it, as raw float32 or as JSON."""
    trace = query.trace(body)
    part = parse_slice(body, site_shape(body.site, trace.config, len(trace)))
    return slice_response(query.request, part, lambda: trace.read(body.site, part.rows, part.columns))


def weight(body: api.WeightRequest, query: Query) -> Response:
    """Return a weight, or a slice of it, as raw float32 or as JSON."""
    tensor = query.model(body.model).weight(body.name)
    part = parse_slice(body, list(tensor.shape))
    return slice_response(query.request, part, lambda: part.of(tensor))


def sites(body: api.SitesRequest, query: Query) -> Response:
    """Return several slices of sites and weights, concatenated; X-Shape separates their shapes with `;`."""
    model, trace = query.model(body.model), query.trace(body)
    # Validate every read before computing any of them.
    reads = [_prepare(read, model, trace) for read in body.reads]
    check_size([part.shape for part, _ in reads], api.MAX_VALUES)
    tensors = []
    for _, read in reads:
        query.check_connected()
        tensors.append(read())
    return matrices_response(tensors)


def _prepare(
    read: api.SliceRead, model: LanguageModel, trace: Trace
) -> tuple[TensorSlice, Callable[[], Tensor]]:
    """Return the slice and a function that computes it."""
    if read.weight is not None and read.site is None:
        tensor = model.weight(read.weight)
        part = parse_slice(read, list(tensor.shape))
        return part, lambda: part.of(tensor)
    if read.site is not None and read.weight is None:
        name = read.site
        part = parse_slice(read, site_shape(name, trace.config, len(trace)))
        return part, lambda: trace.read(name, part.rows, part.columns)
    raise UserError("each read needs either a site or a weight")


def patterns(body: api.PatternsRequest, query: Query) -> Response:
    """Return the pooled attention weights, blocks × heads × cells × cells; each row of cells sums to 1."""
    trace = query.trace(body)
    size = math.ceil(len(trace) / body.cells)
    pooled = []
    for block in choose_blocks(body.blocks, trace):
        query.check_connected()
        weights = trace.weights(block).float().cpu().numpy()
        pooled.append(torch.as_tensor(pool_weights(weights, size, size)))
    return matrices_response([torch.stack(pooled)])


def streams(body: api.TextRequest, query: Query) -> Response:
    """Return blocks × 3 × tokens: the norms of a block's input, its attention output and its feed-forward output."""
    stream = query.trace(body).stream
    outputs = [*stream.inputs[1:], stream.last]
    norms = [
        torch.stack((x[0].norm(dim=-1), (middle - x)[0].norm(dim=-1), (out - middle)[0].norm(dim=-1)))
        for x, middle, out in zip(stream.inputs, stream.middles, outputs, strict=True)
    ]
    return matrices_response([torch.stack(norms)])
