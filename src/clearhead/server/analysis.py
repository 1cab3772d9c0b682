"""The routes by which the page asks: where two texts differ, what matters for a word, what wrote it, why."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from fastapi import APIRouter, Request
from torch import Tensor

from clearhead.api import analysis, inspection
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.paths import LinearReadout, follow_path
from clearhead.inspect.sweep import variants
from clearhead.inspect.trace import Trace
from clearhead.server.disconnect import raise_if_cancelled
from clearhead.server.errors import APIError
from clearhead.server.responses import OF_A_MODEL
from clearhead.server.trace_cache import TraceCache, choose_blocks


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])

    @router.post("/compare", responses=OF_A_MODEL)
    async def compare(request: Request, body: analysis.CompareRequest) -> analysis.CompareAnswer:
        """Two texts through one model, or one through two: how far apart they are at every site."""

        def read(cancelled: threading.Event) -> analysis.CompareAnswer:
            one, other = trace_cache.trace(body, cancelled), trace_cache.trace(body.other, cancelled)
            for trace in (one, other):
                _check_length(trace, analysis.LONGEST_COMPARED)
            compared = one.compare(other)
            distances: dict[str, float] = {}
            for block in choose_blocks(body.blocks, one):
                raise_if_cancelled(cancelled)
                distances |= compared.distances(None) if block == 0 else {}
                distances |= compared.distances(block)
            found = [
                analysis.SiteDistance(site=site, distance=finite(far)) for site, far in distances.items()
            ]
            return analysis.CompareAnswer(pairs=compared.pairs, distances=found)

        with trace_cache.registry.reading(body.other.model):
            return await trace_cache.run(request, body.model, read)

    @router.post("/effects", responses=OF_A_MODEL)
    async def effects(request: Request, body: analysis.EffectsRequest) -> analysis.EffectsAnswer:
        """How likely a word is when each head, or each position, is silenced or taken from elsewhere."""

        def read(cancelled: threading.Event) -> analysis.EffectsAnswer:
            trace = trace_cache.trace(body, cancelled)
            _check_length(trace, analysis.LONGEST_SWEPT)
            word, position = trace.token_id(body.word), trace.check_position(body.position)
            source = None
            if body.source is not None:
                source = trace_cache.trace(
                    inspection.TextRequest(model=body.model, text=body.source, edits=[]), cancelled
                )

            over = "head" if body.over == "head" else "block × position"
            chosen = choose_blocks(body.blocks, trace)
            after: dict[int, list[float | None]] = {block: [] for block in chosen}
            for block, batch in variants(trace, over, source, chosen):
                raise_if_cancelled(cancelled)
                after[block] += finite(_likely(batch.read("logits", rows=[position])[:, 0], word))
            (before,) = _likely(trace.read("logits", rows=[position]), word)
            return analysis.EffectsAnswer(before=finite(before), after=list(after.values()))

        return await trace_cache.run(request, body.model, read)

    @router.post("/attribute", responses=OF_A_MODEL)
    async def attribute(request: Request, body: analysis.AttributeRequest) -> analysis.AttributeAnswer:
        """What every head, feed-forward, embedding and bias adds to a word's logit; or to a part of it."""

        def read(cancelled: threading.Event) -> analysis.AttributeAnswer:
            trace = trace_cache.trace(body, cancelled)
            word, position = trace.token_id(body.word), trace.check_position(body.position)
            hops = [(hop.block, hop.head, hop.source) for hop in body.through]
            readout = follow_path(trace, word, position, hops)
            split = readout.attribution() if hops else trace.attribute(word, position)
            parts = sorted(zip(split.names, split.values.tolist(), strict=True), key=lambda p: -abs(p[1]))
            return analysis.AttributeAnswer(
                position=readout.position,
                total=finite(split.total),
                parts=_parts(parts),
                heads=_heads(readout, [name for name, _ in parts], body.heads),
            )

        return await trace_cache.run(request, body.model, read)

    @router.post("/why", responses=OF_A_MODEL)
    async def why(request: Request, body: analysis.WhyRequest) -> analysis.WhyAnswer:
        """Which earlier parts made a head look from one position to another."""

        def read(cancelled: threading.Event) -> analysis.WhyAnswer:
            trace = trace_cache.trace(body, cancelled)
            found = trace.block[body.block].head[body.head].why(body.looking, body.looked_at)
            sides = [
                sorted(
                    zip(found.names, found.values.sum(side).tolist(), strict=True), key=lambda p: -abs(p[1])
                )
                for side in (1, 0)
            ]
            return analysis.WhyAnswer(
                score=finite(found.total),
                query=_parts(sides[0]),
                key=_parts(sides[1]),
                pairs=[
                    analysis.PartPair(query=query, key=key, value=finite(value))
                    for query, key, value in found.top(body.count)
                ],
            )

        return await trace_cache.run(request, body.model, read)

    @router.post("/lens", responses=OF_A_MODEL)
    async def lens(request: Request, body: analysis.LensRequest) -> analysis.LensAnswer:
        """What each block would say next at each position."""

        def read(cancelled: threading.Event) -> analysis.LensAnswer:
            trace = trace_cache.trace(body, cancelled)
            first, last = body.rows or (0, len(trace))
            if not 0 <= first < last <= len(trace) or last - first > analysis.LONGEST_LENS:
                raise UserError(
                    f"rows {first} to {last}: expected at most {analysis.LONGEST_LENS} within 0 to {len(trace)}"
                )
            word = None if body.word is None else trace.token_id(body.word)
            rows, answers = list(range(first, last)), []
            for block in range(trace.config.n_block):
                raise_if_cancelled(cancelled)
                answers.append(_said(trace, block, rows, word))
            return analysis.LensAnswer(words=answers)

        return await trace_cache.run(request, body.model, read)

    return router


def _likely(logits: Tensor, word: int) -> list[float]:
    """The logarithm of a word's probability for each row: N V → N."""
    found: list[float] = logits.float().log_softmax(-1)[:, word].tolist()
    return found


def _said(trace: Trace, block: int, rows: list[int], word: int | None) -> list[analysis.LensWord]:
    stream = trace.read(f"block.{block}.output", rows=rows)
    probabilities = trace.unembed(stream[None])[0].float().softmax(-1)
    best = probabilities.max(-1)
    chosen = [None] * len(rows) if word is None else finite(probabilities[:, word].tolist())
    texts = trace.token_texts(best.indices.tolist())
    return [
        analysis.LensWord(text=text, probability=finite(p), chosen=c)
        for text, p, c in zip(texts, best.values.tolist(), chosen, strict=True)
    ]


def _heads(readout: LinearReadout, names: Sequence[str], count: int) -> list[analysis.HeadTokens]:
    """Of those heads that come first among the parts, what each token gave."""
    chosen = [tuple(map(int, name.split(".")[1:4:2])) for name in names if ".head." in name][:count]
    tables = {block: readout.by_position(block) for block in {block for block, _ in chosen}}
    return [
        analysis.HeadTokens(block=block, head=head, values=finite(tables[block][head].tolist()))
        for block, head in chosen
    ]


def _check_length(trace: Trace, most: int) -> None:
    if len(trace) > most:
        what = f"the text has {len(trace)} tokens; for this at most {most} go"
        raise APIError(400, "too_many_tokens", what, "text", count=len(trace), most=most)


def _parts(parts: Iterable[tuple[str, float]]) -> list[analysis.Part]:
    return [analysis.Part(name=name, value=finite(value)) for name, value in parts]
