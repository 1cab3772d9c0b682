"""The models on this disk beside those served from the start: loaded when they are chosen, one at a time."""

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
from clearhead.server.errors import APIError
from clearhead.server.model_registry import LoadOptions, ModelRegistry, ServedModel, unique_name
from clearhead.server.run_registry import RunRegistry
from clearhead.server.trace_cache import TraceCache

USUAL_MEMORY = 2**33  # bytes, where the machine does not say
SNAPSHOTS = 8  # of runs, in memory at a time
BYTES = 4  # of a parameter: models are held in float32


@dataclass(frozen=True)
class ModelLibrary:
    """What can be opened and pulled while the server runs."""

    places: Sequence[Path]  # where models are looked for
    home: Path  # where pulled ones go
    loader: LoadOptions
    memory: int | None = None  # bytes; what the device has, unless said

    def measure_memory(self) -> int:
        return self.memory or memory_of(pick_device(self.loader.device)) or USUAL_MEMORY


class ModelLoader:
    """Puts on the registry what is on the disk. Without an library, what is served stays as it was."""

    def __init__(
        self,
        registry: ModelRegistry,
        trace_cache: TraceCache,
        library: ModelLibrary | None,
        runs: RunRegistry,
        log: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.registry, self.trace_cache, self.library, self.runs, self.log = (
            registry,
            trace_cache,
            library,
            runs,
            log,
        )
        self._looking, self._one = asyncio.Lock(), asyncio.Lock()
        self._openings: dict[str, asyncio.Task[Busy | None]] = {}
        self._wanted: Counter[str] = Counter()  # requests that wait for a model

    async def look(self) -> None:
        """Know what is on the disk now, newest first. A name once given stays the same model's."""
        if self.library is None:
            return
        places = self.library.places
        async with self._looking:
            found = await in_thread(lambda _: list_models(places))
        known = {each.listed.path.resolve(): each for each in self.registry if each.listed is not None}
        for listed in sorted(found, key=lambda each: each.made, reverse=True):
            before = known.pop(listed.path.resolve(), None)
            if before is None:
                self.registry.put(ServedModel(unique_name(listed.name, self.registry.served), listed=listed))
            elif before.model is None and before.listed != listed:
                self.registry.put(replace(before, listed=listed))
        for gone in known.values():
            there = gone.listed is not None and gone.listed.path.exists()
            if gone.state in ("not loaded", "failed") and not there:
                del self.registry.served[gone.name]

    async def open(self, name: str) -> None:
        """Have it loaded. Whoever leaves meanwhile stops only what has not begun."""
        if self.library is not None and name not in self.registry.served:
            await self._find_snapshot(name)
        found = self.registry.served.get(name)
        if self.library is None or found is None or found.model is not None:
            self.registry.model(name)  # or a refusal
            return
        opening = self._openings.get(name)
        if opening is None:
            opening = self._openings[name] = asyncio.create_task(self._load(name, self.library))
        self._wanted[name] += 1
        try:
            busy = await asyncio.shield(opening)
        finally:
            self._wanted[name] -= 1
        if busy is not None:
            raise busy
        after = self.registry.served[name]
        if after.error is not None:
            what = f"{name!r} could not be loaded: {after.error}"
            raise APIError(503, "model_not_loaded", what, "model", name=name, reason=after.error)
        self.registry.model(name)

    async def _find_snapshot(self, name: str) -> None:
        """A run's snapshots are known of once they are asked for."""

        def find(_: threading.Event) -> Listed | None:
            path = self.runs.find_snapshot(name)
            return None if path is None else describe(path)

        listed = await in_thread(find)
        if listed is not None and name not in self.registry.served:
            self.registry.put(ServedModel(name, listed=listed))

    async def _load(self, name: str, library: ModelLibrary) -> Busy | None:
        """What comes of it is on the registry then; or it could not be begun, and may be another time."""
        found = self.registry.served[name]
        assert found.listed is not None
        path, closed = found.listed.path, replace(found, error=None, loading=False)
        self.registry.put(replace(closed, loading=True))
        try:
            async with self._one:
                if not self._wanted[name]:
                    return None
                await self._make_room(BYTES * found.listed.config.n_parameter, library.measure_memory())
                closed = await in_thread(lambda _: library.loader.load(name, path))
        except Busy as busy:
            return busy
        except UserError as error:
            self.log(f"{name} could not be loaded: {error}")
            closed = replace(closed, error=strip_folders(str(error), path))
        except Exception as error:  # our own mistake, or the device's; the others are served on
            self.log(f"{name} could not be loaded: {error!r}")
            closed = replace(closed, error="a mistake of ours; the server's own output says more")
        finally:
            self.registry.put(closed)
            del self._openings[name]
        return None

    async def renew(self, path: Path) -> None:
        """A model was trained further: the one in memory is closed, and read again when it is asked for."""
        place = path.resolve()
        for each in list(self.registry):
            ours = each.listed is not None and each.listed.path.resolve() == place
            if ours and each.model is not None:
                await self._close(each)

    async def _make_room(self, needed: int, memory: int) -> None:
        """Close what was not used for longest and has nothing to do.

        Weights may take half of the memory. The other half is for what grows with use (traces, and the keys
        and values of the texts that are being written) and for the user's other programs. One larger model
        is opened too, where it fits at all: then it is the only one.
        """
        if needed > memory:
            raise UserError(
                f"it needs {needed / 2**30:.1f} GB of memory, and there are {memory / 2**30:.1f} GB"
            )
        while (held := self._held()) and held + needed > memory // 2:
            await self._close_one(self.registry)
        while sum(each.model is not None for each in self._snapshots()) >= SNAPSHOTS:
            await self._close_one(self._snapshots())

    def _snapshots(self) -> list[ServedModel]:
        return [each for each in self.registry if each.is_snapshot]

    async def _close_one(self, among: Iterable[ServedModel]) -> None:
        idle = [
            each
            for each in among
            if each.model is not None
            and each.listed is not None
            and not each.writes
            and not self.registry.readers[each.name]
        ]
        if not idle:
            raise Busy("the models in memory are all at work, and there is no room for another")
        await self._close(min(idle, key=lambda each: self.registry.last_use[each.name]))

    def _held(self) -> int:
        return sum(BYTES * each.model.config.n_parameter for each in self.registry if each.model is not None)

    async def _close(self, served: ServedModel) -> None:
        self.registry.put(ServedModel(served.name, listed=served.listed))
        await self.trace_cache.forget(served.name)
        engine = served.engine
        if engine is not None:
            await in_thread(lambda _: engine.close())


def strip_folders(said: str, *paths: Path) -> str:
    """The same, with the last parts of these paths instead of where they lie."""
    folders = {
        each for path in paths for whole in (path, path.absolute()) for each in (whole, *whole.parents)
    }
    for folder in sorted(folders, key=lambda each: -len(str(each))):
        if folder.name:
            said = said.replace(str(folder), folder.name)
    return said
