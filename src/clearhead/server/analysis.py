"""The routes that analyze a trace: comparison, ablation and patching, attribution, attention scores, logit lens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from fastapi import APIRouter
from torch import Tensor

from clearhead.api import analysis as api
from clearhead.api.inspection import TextRequest
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.paths import LinearReadout, follow_path
from clearhead.inspect.sweep import variants
from clearhead.inspect.trace import Trace
from clearhead.server.errors import APIError
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache, choose_blocks

LENS_ROWS = 64  # rows of logits to compute at once for the logit lens: the vocabulary may be large


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])
    add_query(
        router,
        trace_cache,
        "/compare",
        compare,
        models=lambda body: [body.model, body.other.model],
        responses=MODEL_ERRORS,
    )
    for path, answer in (("/effects", effects), ("/attribute", attribute), ("/why", why), ("/lens", lens)):
        add_query(router, trace_cache, path, answer, responses=MODEL_ERRORS)
    return router


def compare(body: api.CompareRequest, query: Query) -> api.CompareResponse:
    """Compare two texts in one model, or one text in two models: the distance at every site."""
    one, other = query.trace(body), query.trace(body.other)
    for trace in (one, other):
        _check_length(trace, api.MAX_COMPARED)
    compared = one.compare(other)
    distances: dict[str, float] = {}
    for block in choose_blocks(body.blocks, one):
        query.check_connected()
        distances |= compared.distances(None) if block == 0 else {}
        distances |= compared.distances(block)
    return api.CompareResponse(
        pairs=compared.pairs,
        distances=[
            api.SiteDistance(site=site, distance=finite(distance)) for site, distance in distances.items()
        ],
    )


def effects(body: api.EffectsRequest, query: Query) -> api.EffectsResponse:
    """Ablate or patch each head or position in turn, and return a token's log-probability each time."""
    trace = query.trace(body)
    _check_length(trace, api.MAX_SWEPT)
    token, position = trace.token_id(body.token), trace.check_position(body.position)
    source = None
    if body.source is not None:
        source = query.trace(TextRequest(model=body.model, text=body.source, edits=[]))
    over = "head" if body.over == "head" else "block × position"
    blocks = choose_blocks(body.blocks, trace)
    after: dict[int, list[float | None]] = {block: [] for block in blocks}
    for block, batch in variants(trace, over, source, blocks):
        query.check_connected()
        after[block] += finite(_log_probabilities(batch.read("logits", rows=[position])[:, 0], token))
    (before,) = _log_probabilities(trace.read("logits", rows=[position]), token)
    return api.EffectsResponse(before=finite(before), after=list(after.values()))


def attribute(body: api.AttributeRequest, query: Query) -> api.AttributeResponse:
    """Return each component's contribution to a token's logit, to the difference of two, or to a part of either."""
    trace = query.trace(body)
    token, position = trace.token_id(body.token), trace.check_position(body.position)
    against = None if body.against is None else trace.token_id(body.against)
    hops = [(hop.block, hop.head, hop.source) for hop in body.through]
    readout = follow_path(trace, token, position, hops, against)
    split = readout.attribution() if hops else trace.attribute(token, position, against=against)
    parts = sorted(zip(split.names, split.values.tolist(), strict=True), key=lambda part: -abs(part[1]))
    return api.AttributeResponse(
        position=readout.position,
        total=finite(split.total),
        parts=_parts(parts),
        heads=_head_tokens(readout, [name for name, _ in parts], body.heads),
    )


def why(body: api.WhyRequest, query: Query) -> api.WhyResponse:
    """Split an attention score, or the difference of two, into contributions of earlier components."""
    head = query.trace(body).block[body.block].head[body.head]
    split = head.why(body.query_position, body.key_position, against=body.against_position)
    return api.WhyResponse(
        score=finite(split.total),
        query=_parts(split.by_query.top(len(split.names))),
        key=_parts(split.by_key.top(len(split.names))),
        pairs=[
            api.PartPair(query=query_name, key=key_name, value=finite(value))
            for query_name, key_name, value in split.top(body.count)
        ],
    )


def lens(body: api.LensRequest, query: Query) -> api.LensResponse:
    """Apply the logit lens: the most likely next token after each block, at each position."""
    trace = query.trace(body)
    start, stop = body.rows or (0, len(trace))
    if not 0 <= start < stop <= len(trace) or stop - start > api.MAX_LENS:
        raise UserError(
            f"rows {start} to {stop}: expected at most {api.MAX_LENS} rows within 0 to {len(trace)}"
        )
    token = None if body.token is None else trace.token_id(body.token)
    rows, blocks = list(range(start, stop)), []
    step = max(1, LENS_ROWS // len(rows))
    for first in range(0, trace.config.n_block, step):
        query.check_connected()
        blocks += _lens_of_blocks(trace, range(first, min(first + step, trace.config.n_block)), rows, token)
    return api.LensResponse(tokens=blocks)


def _log_probabilities(logits: Tensor, token: int) -> list[float]:
    """Return a token's log-probability in each row: N V → N."""
    values: list[float] = logits.float().log_softmax(-1)[:, token].tolist()
    return values


def _lens_of_blocks(
    trace: Trace, blocks: Iterable[int], rows: list[int], token: int | None
) -> list[list[api.LensToken]]:
    # An edit outside the blocks selects positions of the whole text, so all of it is unembedded.
    whole = bool(trace.edits.of(None).made)
    streams = torch.stack(
        [trace.read(f"block.{block}.output", rows=None if whole else rows) for block in blocks]
    )
    logits = trace.unembed(streams)
    probabilities = (logits[:, rows] if whole else logits).float().softmax(-1)
    likeliest = probabilities.max(-1)
    found = []
    for values, ids, of_block in zip(likeliest.values, likeliest.indices, probabilities, strict=True):
        chosen = [None] * len(rows) if token is None else finite(of_block[:, token].tolist())
        texts = trace.token_texts(ids.tolist())
        lens_tokens = zip(texts, values.tolist(), chosen, strict=True)
        found.append(
            [api.LensToken(text=text, probability=finite(p), chosen=c) for text, p, c in lens_tokens]
        )
    return found


def _head_tokens(readout: LinearReadout, names: Sequence[str], count: int) -> list[api.HeadTokens]:
    """Return the contribution of each token through the first `count` heads among these parts."""
    heads = [tuple(map(int, name.split(".")[1:4:2])) for name in names if ".head." in name][:count]
    tables = {block: readout.by_position(block) for block in {block for block, _ in heads}}
    return [
        api.HeadTokens(block=block, head=head, values=finite(tables[block][head].tolist()))
        for block, head in heads
    ]


def _check_length(trace: Trace, limit: int) -> None:
    if len(trace) > limit:
        message = f"the text has {len(trace)} tokens; the limit here is {limit}"
        raise APIError(400, "too_many_tokens", message, "text", count=len(trace), most=limit)


def _parts(parts: Iterable[tuple[str, float]]) -> list[api.Part]:
    return [api.Part(name=name, value=finite(value)) for name, value in parts]
