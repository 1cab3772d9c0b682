"""The routes that list the labs and run one at a time."""

from __future__ import annotations

import asyncio
import threading

from fastapi import APIRouter, Request

from clearhead.api import labs
from clearhead.generate.engine import Busy
from clearhead.labs.catalog import LABS, find_lab, lab
from clearhead.labs.lab import Result
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.errors import APIError
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.route_descriptions import MODEL_ERRORS


def make_router(registry: ModelRegistry) -> APIRouter:
    router, lock = APIRouter(prefix="/api", tags=["clearhead"]), asyncio.Lock()

    @router.get("/labs")
    async def list_labs() -> labs.LabList:
        """List the lectures' experiments."""
        return labs.LabList(labs=[labs.LabDetails.of(each) for each in LABS.values()])

    @router.post("/lab", responses=MODEL_ERRORS)
    async def run(request: Request, body: labs.LabRequest) -> labs.LabResponse:
        """Run a lab. Labs that train take minutes, and stop when the client disconnects."""
        chosen = find_lab(body.name)
        chosen.check(body.settings)
        if chosen.model is not None and body.model is None:
            message = f"the lab {chosen.name} inspects a model: name one listed by /v1/models"
            raise APIError(400, "model_missing", message, "model")
        if lock.locked():
            raise Busy("another lab is running")

        def work(cancelled: threading.Event) -> Result:
            model = None if body.model is None else registry.model(body.model)
            return lab(chosen.name, model, lambda: raise_if_cancelled(cancelled), **body.settings)

        names = [] if body.model is None else [body.model]
        with registry.in_use(*names):
            async with lock:
                return labs.LabResponse.of(await until_disconnect(request, in_thread(work)))

    return router
