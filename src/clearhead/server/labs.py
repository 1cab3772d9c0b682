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
from clearhead.server.description import OF_A_MODEL
from clearhead.server.disconnect import in_thread, stop_if, unless_left
from clearhead.server.errors import APIError
from clearhead.server.model_registry import ModelRegistry


def make_routes(shelf: ModelRegistry) -> APIRouter:
    routes, one = APIRouter(prefix="/api", tags=["clearhead"]), asyncio.Lock()

    @routes.get("/labs")
    async def list_labs() -> labs.LabList:
        """The lectures' experiments."""
        return labs.LabList(labs=[labs.LabDetails.of(each) for each in LABS.values()])

    @routes.post("/lab", responses=OF_A_MODEL)
    async def run(request: Request, asked: labs.LabRequest) -> labs.LabAnswer:
        """Run a lab: some take a moment, those that train take minutes, and end when the client leaves."""
        found = find_lab(asked.name)
        found.check(asked.settings)
        if found.model is not None and asked.model is None:
            raise APIError(400, "model_missing", f"{found.name} looks into a model: name one", "model")
        if one.locked():
            raise Busy("a lab is at work already")

        def work(left: threading.Event) -> Result:
            model = None if asked.model is None else shelf.model(asked.model)
            return lab(found.name, model, lambda: stop_if(left), **asked.settings)

        with ExitStack() as stack:
            if asked.model is not None:
                stack.enter_context(shelf.reading(asked.model))
            async with one:
                return labs.LabAnswer.of(await unless_left(request, in_thread(work)))

    return routes
