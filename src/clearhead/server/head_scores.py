"""The route that scores what each head attends to, computed once per model."""

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
from clearhead.server.route_descriptions import MODEL_ERRORS

# Large models are scored on fewer texts, each of which takes as long as 1.5 forward passes. With a third of
# the stories, SmolLM2's heads rank in nearly the same order, and no score changes by more than 0.07.
LARGE = 50_000_000  # parameters
FEWER = 3


class HeadScoreCache:
    """The scores of each loaded model. One model is scored at a time."""

    def __init__(self) -> None:
        self._tasks: WeakKeyDictionary[LanguageModel, asyncio.Task[HeadScores]] = WeakKeyDictionary()
        self._lock = asyncio.Lock()

    async def get(self, model: LanguageModel) -> HeadScores:
        """Return the scores. A client that disconnects does not stop the work: the next client may need it."""
        task = self._tasks.get(model)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._tasks[model] = asyncio.create_task(self._score(model))
        return await asyncio.shield(task)

    async def _score(self, model: LanguageModel) -> HeadScores:
        fewer = FEWER if model.config.n_parameter > LARGE else 1

        def work(cancelled: threading.Event) -> HeadScores:
            return heads(
                model,
                math.ceil(REPEATED / fewer),
                math.ceil(STORIES / fewer),
                lambda: raise_if_cancelled(cancelled),
            )

        async with self._lock:
            return await in_thread(work)


def make_router(registry: ModelRegistry) -> APIRouter:
    router, cache = APIRouter(prefix="/api", tags=["clearhead"]), HeadScoreCache()

    @router.post("/heads", responses=MODEL_ERRORS)
    async def score(request: Request, body: models.HeadsRequest) -> models.HeadsResponse:
        """Return how much each head attends to the previous token, the first token, the same token and so on.

        The first request for a model takes several seconds.
        """
        with registry.in_use(body.model):
            scores = await until_disconnect(request, cache.get(registry.model(body.model)))
        return models.HeadsResponse(
            kinds={kind: finite(table.tolist()) for kind, table in scores.kinds.items()},
            chance=dict(scores.chance),
        )

    return router
