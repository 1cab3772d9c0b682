"""The routes of the model picker: what there is, have one loaded, pull one."""

from __future__ import annotations

from fastapi import APIRouter, Request

from clearhead.api import models
from clearhead.model.config import Config
from clearhead.server.disconnect import until_disconnect
from clearhead.server.model_loader import ModelLoader
from clearhead.server.model_puller import ModelPuller
from clearhead.server.model_registry import ServedModel
from clearhead.server.responses import OF_A_MODEL, OF_A_PULL


def make_router(loader: ModelLoader, puller: ModelPuller) -> APIRouter:
    router, registry = APIRouter(prefix="/api", tags=["clearhead"]), loader.registry

    @router.get("/models")
    async def list_models() -> models.ModelDetailsList:
        """Every model that there is, also those that could not be loaded, and what can be pulled."""
        await loader.look()
        return models.ModelDetailsList(
            models=[_details(each) for each in registry if not each.is_snapshot],
            can_be_pulled=puller.pullable,
        )

    @router.post("/open", responses=OF_A_MODEL)
    async def open_model(request: Request, body: models.OpenRequest) -> models.ModelDetails:
        """Load a model of the list, and answer when it is there; what was not used for long may be closed."""
        await until_disconnect(request, loader.open(body.model))
        return _details(registry.served[body.model])

    @router.post("/pull", responses=OF_A_PULL)
    async def pull(body: models.PullRequest) -> models.PullState:
        """Begin to pull a model of the list, one at a time."""
        puller.start(body.name)
        return puller.state

    @router.get("/pulling")
    async def pulling() -> models.PullState:
        """How far it is."""
        return puller.state

    @router.post("/pull/cancel")
    async def cancel() -> models.PullState:
        """Give up what is being pulled."""
        puller.cancel()
        return puller.state

    return router


def _details(served: ServedModel) -> models.ModelDetails:
    model, listed = served.model, served.listed
    config = model.config if model is not None else listed.config if listed is not None else None
    trained = served.is_snapshot or (model is not None and model.training is not None)
    return models.ModelDetails(
        name=served.name,
        state=served.state,
        origin="run" if trained else listed.origin if listed is not None else "file",
        # Why, where it came from the start, is for the server's own output: it may name folders.
        error=served.error if listed is not None or served.error is None else "could not be loaded",
        parameters=None if config is None else config.n_parameter,
        kind=None if config is None else config.kind,
        config=config if isinstance(config, Config) else None,
        tokenizer=None if model is None else model.tokenizer.kind,
        chats=model is not None and isinstance(model.tokenizer.config.get("chat_template"), str),
        bytes=None if listed is None else listed.bytes,
        licence=None if listed is None else listed.licence,
    )
