"""Pulling a model while the server runs: one at a time, of a fixed list, whole or not at all."""

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
from clearhead.server.errors import APIError
from clearhead.server.model_loader import strip_folders


class ModelPuller:
    """Without a home nothing can be pulled."""

    def __init__(self, home: Path | None, log: Callable[[str], object] = lambda _: None) -> None:
        self.home, self.log = home, log
        self.state = models.PullState()
        self._task: asyncio.Task[None] | None = None

    @property
    def pullable(self) -> list[models.PullableModel]:
        """What is not here yet."""
        if self.home is None:
            return []
        return [
            models.PullableModel(
                name=each.name, title=each.title, licence=each.licence, bytes=each.package_size
            )
            for each in pulled.CATALOGUE.values()
            if pulled.find(each.name, self.home) is None
        ]

    def start(self, name: str) -> None:
        if self.home is None:
            raise APIError(404, "cannot_be_pulled", "nothing can be pulled here", "name")
        if name not in pulled.CATALOGUE:
            known = ", ".join(pulled.CATALOGUE)
            raise APIError(404, "cannot_be_pulled", f"{name!r} cannot be pulled; there is {known}", "name")
        if self._task is not None and not self._task.done():
            what = f"{self.state.name} is being pulled already: one at a time"
            raise APIError(409, "already_pulling", what, name=self.state.name or "")
        self.state = models.PullState(
            name=name, state="downloading", total=pulled.CATALOGUE[name].package_size
        )
        self._task = asyncio.create_task(self._pull(name, self.home))

    def cancel(self) -> None:
        """Nothing half-made is left. Where nothing is being pulled, this does nothing."""
        if self._task is not None and self.state.state in ("downloading", "unpacking"):
            self.state = models.PullState(name=self.state.name, state="cancelled")
            self._task.cancel()

    async def _pull(self, name: str, home: Path) -> None:
        def work(cancelled: threading.Event) -> None:
            def report(doing: str, done: int, total: int) -> None:
                raise_if_cancelled(cancelled)
                self.state = models.PullState(
                    name=name,
                    state="unpacking" if doing == "unpacking" else "downloading",
                    done=done,
                    total=total,
                )

            pulled.pull(name, home, report)

        try:
            await in_thread(work)
        except asyncio.CancelledError:
            self.state = models.PullState(name=name, state="cancelled")
        except UserError as error:
            self.log(f"{name} was not pulled: {error}")
            said = strip_folders(str(error), home, Path(tempfile.gettempdir()))
            self.state = models.PullState(name=name, state="failed", error=said)
        except Exception as error:  # our own mistake; nobody waits for this task
            self.log(f"{name} was not pulled: {error!r}")
            said = "a mistake of ours; the server's own output says more"
            self.state = models.PullState(name=name, state="failed", error=said)
        else:
            size = pulled.CATALOGUE[name].size
            self.state = models.PullState(name=name, state="done", done=size, total=size)
