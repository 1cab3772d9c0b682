"""The routes by which the page asks: where two texts differ, what matters for a word, what wrote it, why."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from fastapi import APIRouter, Request
from torch import Tensor

from clearhead.api import inspection, questions
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.paths import Reading, read_back
from clearhead.inspect.sweep import variants
from clearhead.inspect.trace import Trace
from clearhead.server.description import OF_A_MODEL
from clearhead.server.disconnect import stop_if
from clearhead.server.errors import APIError
from clearhead.server.trace_cache import TraceCache, choose_blocks


def make_routes(desk: TraceCache) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["clearhead"])

    @routes.post("/compare", responses=OF_A_MODEL)
    async def compare(request: Request, asked: questions.CompareRequest) -> questions.CompareAnswer:
        """Two texts through one model, or one through two: how far apart they are at every site."""

        def read(left: threading.Event) -> questions.CompareAnswer:
            one, other = desk.trace(asked, left), desk.trace(asked.other, left)
            for trace in (one, other):
                _check_length(trace, questions.LONGEST_COMPARED)
            compared = one.compare(other)
            distances: dict[str, float] = {}
            for block in choose_blocks(asked.blocks, one):
                stop_if(left)
                distances |= compared.distances(None) if block == 0 else {}
                distances |= compared.distances(block)
            found = [
                questions.SiteDistance(site=site, distance=finite(far)) for site, far in distances.items()
            ]
            return questions.CompareAnswer(pairs=compared.pairs, distances=found)

        with desk.shelf.reading(asked.other.model):
            return await desk.do(request, asked.model, read)

    @routes.post("/effects", responses=OF_A_MODEL)
    async def effects(request: Request, asked: questions.EffectsRequest) -> questions.EffectsAnswer:
        """How likely a word is when each head, or each position, is silenced or taken from elsewhere."""

        def read(left: threading.Event) -> questions.EffectsAnswer:
            trace = desk.trace(asked, left)
            _check_length(trace, questions.LONGEST_SWEPT)
            word, position = trace.token_id(asked.word), trace.check_position(asked.position)
            source = None
            if asked.source is not None:
                source = desk.trace(
                    inspection.TextRequest(model=asked.model, text=asked.source, edits=[]), left
                )

            over = "head" if asked.over == "head" else "block × position"
            chosen = choose_blocks(asked.blocks, trace)
            after: dict[int, list[float | None]] = {block: [] for block in chosen}
            for block, batch in variants(trace, over, source, chosen):
                stop_if(left)
                after[block] += finite(_likely(batch.read("logits", rows=[position])[:, 0], word))
            (before,) = _likely(trace.read("logits", rows=[position]), word)
            return questions.EffectsAnswer(before=finite(before), after=list(after.values()))

        return await desk.do(request, asked.model, read)

    @routes.post("/attribute", responses=OF_A_MODEL)
    async def attribute(request: Request, asked: questions.AttributeRequest) -> questions.AttributeAnswer:
        """What every head, feed-forward, embedding and bias adds to a word's logit; or to a part of it."""

        def read(left: threading.Event) -> questions.AttributeAnswer:
            trace = desk.trace(asked, left)
            word, position = trace.token_id(asked.word), trace.check_position(asked.position)
            hops = [(hop.block, hop.head, hop.source) for hop in asked.through]
            reading = read_back(trace, word, position, hops)
            split = reading.split() if hops else trace.attribute(word, position)
            parts = sorted(zip(split.names, split.values.tolist(), strict=True), key=lambda p: -abs(p[1]))
            return questions.AttributeAnswer(
                position=reading.position,
                total=finite(split.total),
                parts=_parts(parts),
                heads=_heads(reading, [name for name, _ in parts], asked.heads),
            )

        return await desk.do(request, asked.model, read)

    @routes.post("/why", responses=OF_A_MODEL)
    async def why(request: Request, asked: questions.WhyRequest) -> questions.WhyAnswer:
        """Which earlier parts made a head look from one position to another."""

        def read(left: threading.Event) -> questions.WhyAnswer:
            trace = desk.trace(asked, left)
            found = trace.block[asked.block].head[asked.head].why(asked.looking, asked.looked_at)
            sides = [
                sorted(
                    zip(found.names, found.values.sum(side).tolist(), strict=True), key=lambda p: -abs(p[1])
                )
                for side in (1, 0)
            ]
            return questions.WhyAnswer(
                score=finite(found.total),
                query=_parts(sides[0]),
                key=_parts(sides[1]),
                pairs=[
                    questions.PartPair(query=query, key=key, value=finite(value))
                    for query, key, value in found.top(asked.count)
                ],
            )

        return await desk.do(request, asked.model, read)

    @routes.post("/lens", responses=OF_A_MODEL)
    async def lens(request: Request, asked: questions.LensRequest) -> questions.LensAnswer:
        """What each block would say next at each position."""

        def read(left: threading.Event) -> questions.LensAnswer:
            trace = desk.trace(asked, left)
            first, last = asked.rows or (0, len(trace))
            if not 0 <= first < last <= len(trace) or last - first > questions.LONGEST_LENS:
                raise UserError(
                    f"rows {first} to {last}: expected at most {questions.LONGEST_LENS} within 0 to {len(trace)}"
                )
            word = None if asked.word is None else trace.token_id(asked.word)
            rows, answers = list(range(first, last)), []
            for block in range(trace.config.n_block):
                stop_if(left)
                answers.append(_said(trace, block, rows, word))
            return questions.LensAnswer(words=answers)

        return await desk.do(request, asked.model, read)

    return routes


def _likely(logits: Tensor, word: int) -> list[float]:
    """The logarithm of a word's probability for each row: N V → N."""
    found: list[float] = logits.float().log_softmax(-1)[:, word].tolist()
    return found


def _said(trace: Trace, block: int, rows: list[int], word: int | None) -> list[questions.LensWord]:
    stream = trace.read(f"block.{block}.output", rows=rows)
    probabilities = trace.read_out(stream[None])[0].float().softmax(-1)
    best = probabilities.max(-1)
    chosen = [None] * len(rows) if word is None else finite(probabilities[:, word].tolist())
    texts = trace.words(best.indices.tolist())
    return [
        questions.LensWord(text=text, probability=finite(p), chosen=c)
        for text, p, c in zip(texts, best.values.tolist(), chosen, strict=True)
    ]


def _heads(reading: Reading, names: Sequence[str], count: int) -> list[questions.HeadTokens]:
    """Of those heads that come first among the parts, what each token gave."""
    chosen = [tuple(map(int, name.split(".")[1:4:2])) for name in names if ".head." in name][:count]
    tables = {block: reading.by_token(block) for block in {block for block, _ in chosen}}
    return [
        questions.HeadTokens(block=block, head=head, values=finite(tables[block][head].tolist()))
        for block, head in chosen
    ]


def _check_length(trace: Trace, most: int) -> None:
    if len(trace) > most:
        what = f"the text has {len(trace)} tokens; for this at most {most} go"
        raise APIError(400, "too_many_tokens", what, "text", count=len(trace), most=most)


def _parts(parts: Iterable[tuple[str, float]]) -> list[questions.Part]:
    return [questions.Part(name=name, value=finite(value)) for name, value in parts]
