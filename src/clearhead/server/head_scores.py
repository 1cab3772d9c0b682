"""What each head does, found once for each model, while others are served."""

from __future__ import annotations

import asyncio
import math
import threading
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Request

from clearhead.api import models
from clearhead.finite import finite
from clearhead.labs.heads import REPEATED, STORIES, HeadScores, heads
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.responses import OF_A_MODEL

# Of a large model fewer texts are read: each takes as long as a forward and a half. With a third of the
# stories SmolLM2's heads come in nearly the same order; none of its scores moves by more than 0.07.
LARGE = 50_000_000  # parameters
FEWER = 3


class HeadScoreCache:
    """Kept as long as the model is in memory; one model at a time is scored."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[LanguageModel, asyncio.Task[HeadScores]] = WeakKeyDictionary()
        self._one = asyncio.Lock()

    async def of(self, model: LanguageModel) -> HeadScores:
        """Who leaves does not stop it: the next to ask has it then."""
        finding = self._found.get(model)
        if finding is None or (finding.done() and (finding.cancelled() or finding.exception() is not None)):
            finding = self._found[model] = asyncio.create_task(self._find(model))
        return await asyncio.shield(finding)

    async def _find(self, model: LanguageModel) -> HeadScores:
        fewer = FEWER if model.config.n_parameter > LARGE else 1

        def work(cancelled: threading.Event) -> HeadScores:
            return heads(
                model,
                math.ceil(REPEATED / fewer),
                math.ceil(STORIES / fewer),
                lambda: raise_if_cancelled(cancelled),
            )

        async with self._one:
            return await in_thread(work)


def make_router(registry: ModelRegistry) -> APIRouter:
    router, scores = APIRouter(prefix="/api", tags=["clearhead"]), HeadScoreCache()

    @router.post("/heads", responses=OF_A_MODEL)
    async def score(request: Request, body: models.HeadsRequest) -> models.HeadsAnswer:
        """How much each head looks at the token before, at the first, at its like, … Takes a while, once."""
        with registry.reading(body.model):
            found = await until_disconnect(request, scores.of(registry.model(body.model)))
        return models.HeadsAnswer(
            kinds={kind: finite(table.tolist()) for kind, table in found.kinds.items()},
            chance=dict(found.chance),
        )

    return router
