"""The routes that list, open and pull models."""

from __future__ import annotations

from fastapi import APIRouter, Request

from clearhead.api import models
from clearhead.formats.listing import Origin
from clearhead.model.config import Config
from clearhead.server.disconnect import until_disconnect
from clearhead.server.model_loader import ModelLoader
from clearhead.server.model_puller import ModelPuller
from clearhead.server.model_registry import ServedModel
from clearhead.server.route_descriptions import MODEL_ERRORS, PULL_ERRORS


def make_router(loader: ModelLoader, puller: ModelPuller) -> APIRouter:
    router, registry = APIRouter(prefix="/api", tags=["clearhead"]), loader.registry

    @router.get("/models")
    async def list_models() -> models.ModelDetailsList:
        """List all models, including those that could not be loaded and those that can be pulled."""
        await loader.scan()
        return models.ModelDetailsList(
            models=[_details(each) for each in registry if not each.is_snapshot],
            can_be_pulled=puller.pullable,
        )

    @router.post("/open", responses=MODEL_ERRORS)
    async def open_model(request: Request, body: models.OpenRequest) -> models.ModelDetails:
        """Load a model and respond when it is ready. Models that have been idle may be unloaded."""
        await until_disconnect(request, loader.open(body.model))
        return _details(registry.served[body.model])

    @router.post("/pull", responses=PULL_ERRORS)
    async def pull(body: models.PullRequest) -> models.PullState:
        """Start pulling a model; one is pulled at a time."""
        puller.start(body.name)
        return puller.state

    @router.get("/pulling")
    async def pulling() -> models.PullState:
        """Return the progress of the current or last pull."""
        return puller.state

    @router.post("/pull/cancel")
    async def cancel() -> models.PullState:
        """Cancel the current pull."""
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
        origin=_origin(served, trained),
        # The full reason may contain paths, so it is only logged.
        error=served.error if listed is not None or served.error is None else "could not be loaded",
        parameters=None if config is None else config.n_parameter,
        kind=None if config is None else config.kind,
        config=config if isinstance(config, Config) else None,
        tokenizer=None if model is None else model.tokenizer.kind,
        has_chat_template=model is not None and isinstance(model.tokenizer.config.get("chat_template"), str),
        bytes=None if listed is None else listed.bytes,
        license=None if listed is None else listed.license,
    )


def _origin(served: ServedModel, trained: bool) -> Origin:
    listed = served.listed
    if trained and (listed is None or listed.origin != "built-in"):
        return "run"
    return "file" if listed is None else listed.origin
