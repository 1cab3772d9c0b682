"""The routes to words as vectors: their senses in many sentences, and their neighbours."""

from __future__ import annotations

import threading

from fastapi import APIRouter, Request

from clearhead.api import embeddings as words
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.inspect.senses import map_senses, neighbours, stages
from clearhead.server.description import OF_A_MODEL
from clearhead.server.disconnect import stop_if
from clearhead.server.errors import APIError
from clearhead.server.trace_cache import TraceCache


def make_routes(desk: TraceCache) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["clearhead"])

    @routes.post("/senses", responses=OF_A_MODEL)
    async def senses(request: Request, asked: words.SensesRequest) -> words.SensesAnswer:
        """One word in many sentences: at every stage a map on which its senses come apart, or do not."""

        def read(left: threading.Event) -> words.SensesAnswer:
            model = desk.shelf.model(asked.model)
            given = [model.tokenizer.start_ids + model.tokenizer.encode(each) for each in asked.sentences]
            count = sum(map(len, given))
            if count > (most := words.LONGEST_SENTENCES):
                what = f"the sentences have {count} tokens; at most {most} go"
                raise APIError(400, "too_many_tokens", what, "sentences", count=count, most=most)
            traces, kept = [], []
            for number, ids in enumerate(given):
                if ids:
                    traces.append(model.inspect(ids, watch=lambda: stop_if(left)))
                    kept.append(number)
            if not traces:
                raise UserError("the sentences are empty", "text_empty")
            found = map_senses(traces, asked.word)
            return words.SensesAnswer(
                stages=stages(traces[0].config),
                occurrences=[
                    words.Occurrence(sentence=kept[i], position=at, piece=traces[i].pieces[0][at])
                    for i, at in found.places
                ],
                points=found.points.tolist(),
                shares=found.shares.tolist(),
                cosines=found.cosines.tolist(),
            )

        return await desk.do(request, asked.model, read)

    @routes.post("/neighbours", responses=OF_A_MODEL)
    async def near(request: Request, asked: words.NeighboursRequest) -> words.NeighboursAnswer:
        """The words whose own vectors lie nearest to the vector at a position."""

        def read(left: threading.Event) -> words.NeighboursAnswer:
            trace = desk.trace(asked, left)
            if asked.stage not in stages(trace.config):
                raise UserError(f"stage {asked.stage!r}: expected embedding, block.0.input, …, or final")
            vector = trace.read(asked.stage, rows=trace.check_position(asked.position))[0]
            if asked.along is not None:
                own = trace.network.unembedding if asked.stage == "final" else trace.network.embedding
                start, end = (trace.token_id(each) for each in (asked.along.start, asked.along.end))
                vector = vector + own.weight[end] - own.weight[start]
            found = neighbours(trace, vector, asked.stage, asked.count)
            texts = trace.words([i for i, _ in found])
            return words.NeighboursAnswer(
                neighbours=[
                    words.Neighbour(id=i, text=text, cosine=finite(cosine))
                    for (i, cosine), text in zip(found, texts, strict=True)
                ]
            )

        return await desk.do(request, asked.model, read)

    return routes
