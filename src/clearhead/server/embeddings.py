"""The routes to words as vectors: their senses in many sentences, and their neighbours."""

from __future__ import annotations

import threading

from fastapi import APIRouter, Request

from clearhead.api import embeddings
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.base_trace import stages
from clearhead.inspect.word_senses import map_senses, neighbors
from clearhead.server.disconnect import raise_if_cancelled
from clearhead.server.errors import APIError
from clearhead.server.responses import OF_A_MODEL
from clearhead.server.trace_cache import TraceCache


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])

    @router.post("/senses", responses=OF_A_MODEL)
    async def senses(request: Request, body: embeddings.SensesRequest) -> embeddings.SensesAnswer:
        """One word in many sentences: at every stage a map on which its senses come apart, or do not."""

        def read(cancelled: threading.Event) -> embeddings.SensesAnswer:
            model = trace_cache.registry.model(body.model)
            given = [model.tokenizer.start_ids + model.tokenizer.encode(each) for each in body.sentences]
            count = sum(map(len, given))
            if count > (most := embeddings.LONGEST_SENTENCES):
                what = f"the sentences have {count} tokens; at most {most} go"
                raise APIError(400, "too_many_tokens", what, "sentences", count=count, most=most)
            traces, kept = [], []
            for number, ids in enumerate(given):
                if ids:
                    traces.append(model.inspect(ids, watch=lambda: raise_if_cancelled(cancelled)))
                    kept.append(number)
            if not traces:
                raise UserError("the sentences are empty", "text_empty")
            found = map_senses(traces, body.word)
            return embeddings.SensesAnswer(
                stages=stages(traces[0].config),
                occurrences=[
                    embeddings.Occurrence(sentence=kept[i], position=at, piece=traces[i].pieces[0][at])
                    for i, at in found.places
                ],
                points=found.points.tolist(),
                shares=found.shares.tolist(),
                cosines=found.cosines.tolist(),
            )

        return await trace_cache.run(request, body.model, read)

    @router.post("/neighbours", responses=OF_A_MODEL)
    async def near(request: Request, body: embeddings.NeighboursRequest) -> embeddings.NeighboursAnswer:
        """The words whose own vectors lie nearest to the vector at a position."""

        def read(cancelled: threading.Event) -> embeddings.NeighboursAnswer:
            trace = trace_cache.trace(body, cancelled)
            if body.stage not in stages(trace.config):
                raise UserError(f"stage {body.stage!r}: expected embedding, block.0.input, …, or final")
            vector = trace.read(body.stage, rows=trace.check_position(body.position))[0]
            if body.along is not None:
                own = trace.network.unembedding if body.stage == "final" else trace.network.embedding
                start, end = (trace.token_id(each) for each in (body.along.start, body.along.end))
                vector = vector + own.weight[end] - own.weight[start]
            found = neighbors(trace, vector, body.stage, body.count)
            texts = trace.token_texts([i for i, _ in found])
            return embeddings.NeighboursAnswer(
                neighbours=[
                    embeddings.Neighbour(id=i, text=text, cosine=finite(cosine))
                    for (i, cosine), text in zip(found, texts, strict=True)
                ]
            )

        return await trace_cache.run(request, body.model, read)

    return router
