"""The routes that report on models, one at a time; a report is kept as long as its model is loaded."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Request

from clearhead.api.reports import ReportProgress, ReportRequest, ReportResponse, TextKind
from clearhead.evaluation.reporting import OnActivity, OnProgress, report_model
from clearhead.formats import builtin
from clearhead.generate.engine import Busy
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import in_thread, raise_if_cancelled, until_disconnect
from clearhead.server.model_registry import ModelRegistry, ServedModel
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.text.corpus import Document

MOST_KEPT = 4  # reports per model, on different texts


def make_router(registry: ModelRegistry) -> APIRouter:
    router, lock = APIRouter(prefix="/api", tags=["clearhead"]), asyncio.Lock()
    kept: WeakKeyDictionary[LanguageModel, dict[str | None, ReportResponse]] = WeakKeyDictionary()

    doing = [""]  # what the report in progress is doing

    @router.get("/report/progress")
    async def progress() -> ReportProgress:
        """Return what the current report is doing."""
        return ReportProgress(doing=doing[0])

    @router.post("/report", responses=MODEL_ERRORS)
    async def report(request: Request, body: ReportRequest) -> ReportResponse:
        """Report on a model. Takes seconds to minutes, and stops when the client disconnects."""
        model, served = registry.model(body.model), registry.served[body.model]
        reports = kept.setdefault(model, {})
        if body.text in reports:
            return reports[body.text]
        if lock.locked():
            raise Busy("another report is running")
        with registry.in_use(body.model):
            async with lock:

                def work(cancelled: threading.Event) -> ReportResponse:
                    def say(message: str) -> None:
                        raise_if_cancelled(cancelled)
                        doing[0] = message

                    def check(*_: object) -> None:
                        raise_if_cancelled(cancelled)

                    return _report(model, served, body.text, say, check)

                try:
                    reports[body.text] = await until_disconnect(request, in_thread(work))
                finally:
                    doing[0] = ""
        for text in list(reports)[:-MOST_KEPT]:
            del reports[text]
        return reports[body.text]

    return router


def _report(
    model: LanguageModel,
    served: ServedModel,
    text: str | None,
    on_message: OnActivity,
    on_progress: OnProgress,
) -> ReportResponse:
    folder = Path() if served.listed is None else served.listed.path
    documents = None if text is None else [Document.of("text", text)]
    found = report_model(model, folder, documents, on_message=on_message, on_progress=on_progress)
    return ReportResponse.of(found, _kind(folder, text))


def _kind(folder: Path, text: str | None) -> TextKind:
    """The kind of text that the model was measured on."""
    if text is not None:
        return "given"
    return "held out" if builtin.name_of(folder) is None else "new stories"
