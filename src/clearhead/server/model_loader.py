"""Loading models from disk while the server runs: when a client opens them, one at a time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clearhead.errors import UserError
from clearhead.formats.listing import Listed, describe, list_models
from clearhead.generate.engine import Busy
from clearhead.runtime.device import memory_of, pick_device
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import INTERNAL_ERROR, APIError
from clearhead.server.model_registry import LoadOptions, ModelRegistry, ServedModel, unique_name
from clearhead.server.run_registry import RunRegistry
from clearhead.server.trace_cache import TraceCache

DEFAULT_MEMORY = 2**33  # bytes, if the device's memory is unknown
MAX_SNAPSHOTS = 8  # loaded at once
BYTES_PER_PARAMETER = 4  # models are loaded in float32


@dataclass(frozen=True)
class ModelLibrary:
    """The models that can be opened and pulled while the server runs."""

    folders: Sequence[Path]  # searched for models and runs
    home: Path  # where pulled models are stored
    options: LoadOptions
    memory: int | None = None  # bytes; the device's memory by default

    def measure_memory(self) -> int:
        return self.memory or memory_of(pick_device(self.options.device)) or DEFAULT_MEMORY


class ModelLoader:
    """Loads models from the library into the registry. Without a library, the registry does not change."""

    def __init__(
        self,
        registry: ModelRegistry,
        trace_cache: TraceCache,
        library: ModelLibrary | None,
        runs: RunRegistry,
        log: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.registry, self.trace_cache, self.model_library = registry, trace_cache, library
        self.runs, self.log = runs, log
        self._scan_lock, self._load_lock = asyncio.Lock(), asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[Busy | None]] = {}
        self._waiting: Counter[str] = Counter()  # requests waiting for a model

    async def scan(self) -> None:
        """Update the registry with the models on disk, newest first. A name always refers to the same model."""
        if self.model_library is None:
            return
        folders = self.model_library.folders
        async with self._scan_lock:
            found = await in_thread(lambda _: list_models(folders))
        known = {each.listed.path.resolve(): each for each in self.registry if each.listed is not None}
        for listed in sorted(found, key=lambda each: each.made, reverse=True):
            served = known.pop(listed.path.resolve(), None)
            if served is None:
                name = unique_name(listed.name, self.registry.served)
                self.registry.add(ServedModel(name, listed=listed))
            elif served.model is None and served.listed != listed:
                self.registry.add(replace(served, listed=listed))
        for missing in known.values():
            exists = missing.listed is not None and missing.listed.path.exists()
            if missing.state in ("not loaded", "failed") and not exists:
                del self.registry.served[missing.name]

    async def open(self, name: str) -> None:
        """Load a model. If the client disconnects, a load that has not started yet is dropped."""
        if self.model_library is not None and name not in self.registry.served:
            await self._add_snapshot(name)
        served = self.registry.served.get(name)
        if self.model_library is None or served is None or served.model is not None:
            self.registry.model(name)  # raises if it does not exist
            return
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(self._load(name, self.model_library))
        self._waiting[name] += 1
        try:
            busy = await asyncio.shield(task)
        finally:
            self._waiting[name] -= 1
        if busy is not None:
            raise busy
        error = self.registry.served[name].error
        if error is not None:
            message = f"{name!r} could not be loaded: {error}"
            raise APIError(503, "model_not_loaded", message, "model", name=name, reason=error)
        self.registry.model(name)

    async def _add_snapshot(self, name: str) -> None:
        """Add a snapshot of a run to the registry; snapshots are not listed until they are requested."""

        def find(_: threading.Event) -> Listed | None:
            path = self.runs.find_snapshot(name)
            return None if path is None else describe(path)

        listed = await in_thread(find)
        if listed is not None and name not in self.registry.served:
            self.registry.add(ServedModel(name, listed=listed))

    async def _load(self, name: str, library: ModelLibrary) -> Busy | None:
        """Load a model and record the outcome in the registry. Returns Busy if there is no memory for it now."""
        served = self.registry.served[name]
        assert served.listed is not None
        path, result = served.listed.path, replace(served, error=None, loading=False)
        self.registry.add(replace(result, loading=True))
        try:
            async with self._load_lock:
                if not self._waiting[name]:
                    return None
                size = BYTES_PER_PARAMETER * served.listed.config.n_parameter
                await self._free_memory(size, library.measure_memory())
                result = await in_thread(lambda _: library.options.load(name, path))
        except Busy as busy:
            return busy
        except UserError as error:
            self.log(f"{name} could not be loaded: {error}")
            result = replace(result, error=strip_folders(str(error), path))
        except Exception as error:  # a bug or a device error: the other models stay available
            self.log(f"{name} could not be loaded: {error!r}")
            result = replace(result, error=INTERNAL_ERROR)
        finally:
            self.registry.add(result)
            del self._tasks[name]
        return None

    async def unload(self, path: Path) -> None:
        """Unload the model at this path, which has changed; it is loaded again when it is next opened."""
        resolved = path.resolve()
        for served in self.registry:
            matches = served.listed is not None and served.listed.path.resolve() == resolved
            if matches and served.model is not None:
                await self._close(served)

    async def _free_memory(self, needed: int, memory: int) -> None:
        """Close idle models, the least recently used first, until `needed` more bytes of weights fit.

        Weights may take up to half of the memory. The other half is for what grows with use (traces, KV
        caches) and for the user's other programs. A single model may be larger than half if it fits at all.
        """
        if needed > memory:
            raise UserError(
                f"the model needs {needed / 2**30:.1f} GB of memory; the device has {memory / 2**30:.1f} GB"
            )
        while (loaded := self._loaded_bytes()) and loaded + needed > memory // 2:
            await self._close_idle(self.registry)
        while sum(each.model is not None for each in self._snapshots()) >= MAX_SNAPSHOTS:
            await self._close_idle(self._snapshots())

    def _snapshots(self) -> list[ServedModel]:
        return [each for each in self.registry if each.is_snapshot]

    async def _close_idle(self, candidates: Iterable[ServedModel]) -> None:
        idle = [
            each
            for each in candidates
            if each.model is not None
            and each.listed is not None
            and not each.generating
            and not self.registry.users[each.name]
        ]
        if not idle:
            raise Busy("all loaded models are in use, and there is no memory for another")
        await self._close(min(idle, key=lambda each: self.registry.last_use[each.name]))

    def _loaded_bytes(self) -> int:
        models = [each.model for each in self.registry if each.model is not None]
        return sum(BYTES_PER_PARAMETER * model.config.n_parameter for model in models)

    async def _close(self, served: ServedModel) -> None:
        self.registry.add(ServedModel(served.name, listed=served.listed))
        await self.trace_cache.discard(served.name)
        engine = served.engine
        if engine is not None:
            await in_thread(lambda _: engine.close())


def strip_folders(message: str, *paths: Path) -> str:
    """Replace these paths and their parents in a message with their last component."""
    folders = {
        folder for path in paths for full in (path, path.absolute()) for folder in (full, *full.parents)
    }
    for folder in sorted(folders, key=lambda each: -len(str(each))):
        if folder.name:
            message = message.replace(str(folder), folder.name)
    return message
