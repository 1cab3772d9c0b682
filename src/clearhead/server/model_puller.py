"""Downloads of catalog models while the server runs, one at a time."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from clearhead.api import models
from clearhead.errors import UserError
from clearhead.formats import pulled
from clearhead.server.disconnect import in_thread, raise_if_cancelled
from clearhead.server.errors import INTERNAL_ERROR, APIError
from clearhead.server.model_loader import strip_folders


class ModelPuller:
    """Pulls models into `home`; without a home, pulling is disabled."""

    def __init__(self, home: Path | None, log: Callable[[str], object] = lambda _: None) -> None:
        self.home, self.log = home, log
        self.state = models.PullState()
        self._task: asyncio.Task[None] | None = None

    @property
    def pullable(self) -> list[models.PullableModel]:
        """The models in the catalog that have not been pulled yet."""
        if self.home is None:
            return []
        return [
            models.PullableModel(
                name=each.name, title=each.title, license=each.license, bytes=each.package_size
            )
            for each in pulled.CATALOG.values()
            if pulled.find(each.name, self.home) is None
        ]

    def start(self, name: str) -> None:
        if self.home is None:
            raise APIError(404, "cannot_be_pulled", "this server does not pull models", "name")
        if name not in pulled.CATALOG:
            known = ", ".join(pulled.CATALOG)
            message = f"{name!r} cannot be pulled: expected one of {known}"
            raise APIError(404, "cannot_be_pulled", message, "name")
        if self._task is not None and not self._task.done():
            message = f"{self.state.name} is being pulled; only one model is pulled at a time"
            raise APIError(409, "already_pulling", message, name=self.state.name or "")
        self.state = models.PullState(name=name, state="downloading", total=pulled.CATALOG[name].package_size)
        self._task = asyncio.create_task(self._pull(name, self.home))

    def cancel(self) -> None:
        """Cancel the current pull, if there is one. No partial files remain."""
        if self._task is not None and self.state.state in ("downloading", "unpacking"):
            self.state = models.PullState(name=self.state.name, state="cancelled")
            self._task.cancel()

    async def _pull(self, name: str, home: Path) -> None:
        def work(cancelled: threading.Event) -> None:
            def report(phase: str, done: int, total: int) -> None:
                raise_if_cancelled(cancelled)
                self.state = models.PullState(
                    name=name,
                    state="unpacking" if phase == "unpacking" else "downloading",
                    done=done,
                    total=total,
                )

            pulled.pull(name, home, report)

        try:
            await in_thread(work)
        except asyncio.CancelledError:
            self.state = models.PullState(name=name, state="cancelled")
        except UserError as error:
            self.log(f"{name} could not be pulled: {error}")
            message = strip_folders(str(error), home, Path(tempfile.gettempdir()))
            self.state = models.PullState(name=name, state="failed", error=message)
        except Exception as error:  # a bug; nothing awaits this task
            self.log(f"{name} could not be pulled: {error!r}")
            self.state = models.PullState(name=name, state="failed", error=INTERNAL_ERROR)
        else:
            size = pulled.CATALOG[name].size
            self.state = models.PullState(name=name, state="done", done=size, total=size)
