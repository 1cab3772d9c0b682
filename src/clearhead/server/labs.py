"""The routes to the labs: what there is, and one run at a time."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

from fastapi import APIRouter, Request

from clearhead.api import labs
from clearhead.generate.engine import Busy
from clearhead.labs.catalog import LABS, find_lab, lab
from clearhead.labs.lab import Result
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.errors import APIError
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.responses import OF_A_MODEL


def make_router(registry: ModelRegistry) -> APIRouter:
    router, one = APIRouter(prefix="/api", tags=["clearhead"]), asyncio.Lock()

    @router.get("/labs")
    async def list_labs() -> labs.LabList:
        """The lectures' experiments."""
        return labs.LabList(labs=[labs.LabDetails.of(each) for each in LABS.values()])

    @router.post("/lab", responses=OF_A_MODEL)
    async def run(request: Request, body: labs.LabRequest) -> labs.LabAnswer:
        """Run a lab: some take a moment, those that train take minutes, and end when the client leaves."""
        found = find_lab(body.name)
        found.check(body.settings)
        if found.model is not None and body.model is None:
            raise APIError(400, "model_missing", f"{found.name} looks into a model: name one", "model")
        if one.locked():
            raise Busy("a lab is at work already")

        def work(cancelled: threading.Event) -> Result:
            model = None if body.model is None else registry.model(body.model)
            return lab(found.name, model, lambda: raise_if_cancelled(cancelled), **body.settings)

        with ExitStack() as stack:
            if body.model is not None:
                stack.enter_context(registry.reading(body.model))
            async with one:
                return labs.LabAnswer.of(await until_disconnect(request, in_thread(work)))

    return router
