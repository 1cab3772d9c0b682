"""The models that are served, by name: loaded, being loaded, only known of, or not to be loaded, and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clearhead.errors import UserError
from clearhead.formats.listing import Listed, describe
from clearhead.formats.opening import SNAPSHOT, find_model, name_of
from clearhead.generate.engine import Engine
from clearhead.generate.sampling import QUEUE
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel, load
from clearhead.server.errors import APIError

State = Literal["loaded", "loading", "not loaded", "failed"]


@dataclass(frozen=True)
class ServedModel:
    """A model and the engine that writes with it; or why it is not there."""

    name: str
    model: LanguageModel | None = None
    engine: Engine | None = None
    error: str | None = None
    listed: Listed | None = None  # where it lies, which is told to no one, and what it is like
    loading: bool = False
    traces: tuple[Trace, ...] = ()  # made elsewhere: each stands for its own text

    @property
    def state(self) -> State:
        if self.model is not None:
            return "loaded"
        return "failed" if self.error is not None else "loading" if self.loading else "not loaded"

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a model in the midst of its training."""
        return SNAPSHOT in self.name

    @property
    def writes(self) -> bool:
        """Whether anyone waits for a text of it."""
        return self.engine is not None and self.engine.running + self.engine.waiting > 0


class ModelRegistry:
    """Names are looked up here and nowhere else: none is ever a path."""

    def __init__(self, served: Sequence[ServedModel]) -> None:
        self.served = {each.name: each for each in served}
        self._times = itertools.count()
        self.last_use: Counter[str] = Counter()  # by an own count of time
        self.readers: Counter[str] = Counter()  # requests at a time that look into a model

    def put(self, served: ServedModel) -> None:
        """Also in place of what goes by that name."""
        self.served[served.name] = served

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Inside, the model is in use."""
        self.readers[name] += 1
        try:
            yield
        finally:
            self.readers[name] -= 1
            if not self.readers[name]:
                del self.readers[name]

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self.served.values()))  # a thread may put another there meanwhile

    def model(self, name: str) -> LanguageModel:
        """The model of that name, or a refusal."""
        found = self.served.get(name)
        if found is None:
            what = f"there is no model {name!r}; there are {self.names()}"
            raise APIError(404, "model_not_found", what, "model", name=name)
        if found.model is None and found.error is not None:
            raise APIError(503, "model_not_loaded", f"{name!r} could not be loaded", "model", name=name)
        if found.model is None:
            raise APIError(503, "model_not_open", f"{name!r} is not loaded: POST it to /api/open", "model")
        self.last_use[name] = next(self._times)
        return found.model

    def trace(self, name: str, ids: list[int]) -> Trace | None:
        """What was made of this text elsewhere."""
        return next((each for each in self.served[name].traces if each.ids[0].tolist() == ids), None)

    def engine(self, name: str) -> Engine:
        self.model(name)
        engine = self.served[name].engine
        if engine is None:
            raise APIError(400, "model_cannot_write", f"{name!r} sees both ways and cannot write on", "model")
        return engine

    def names(self) -> str:
        return ", ".join(name for name, each in self.served.items() if each.model is not None)

    def end(self) -> None:
        """All that is being written ends where it stands; nobody waits for it here."""
        for each in self:
            if each.engine is not None:
                each.engine.stop(cancel=True)

    def close(self, cancel: bool = False) -> None:
        """End the engines: when what they write is written, or now."""
        for each in self:
            if each.engine is not None:
                each.engine.close(cancel)


@dataclass(frozen=True)
class LoadOptions:
    """How models are loaded here."""

    device: str | None = None
    slots: int = 16
    queue: int = QUEUE

    def load(self, name: str, source: str | Path) -> ServedModel:
        """From its folder, file or pulled name."""
        path = find_model(source)
        listed, model = describe(path), load(path, self.device)
        causal = model.config.causal
        engine = Engine(model.network, model.tokenizer, self.slots, self.queue) if causal else None
        return ServedModel(name, model, engine, listed=listed)


def load_models(
    sources: Sequence[str | Path],
    loader: LoadOptions,
    log: Callable[[str], object] = lambda _: None,
    only_first: bool = False,
) -> ModelRegistry:
    """Each by its folder, file or pulled name; what is wrong with one does not stop the others.

    Where only the first is wanted, it is the first that can be loaded, and no error if none can.
    """
    registry = ModelRegistry([])
    for source in sources:
        if only_first and registry.served:
            break
        name = unique_name(source, registry.served)
        try:
            served = loader.load(name, source)
            assert served.model is not None
            registry.put(served)
            log(f"{name}: {served.model.config.n_parameter:,} parameters")
        except UserError as error:
            if not only_first:
                registry.put(ServedModel(name, error="could not be loaded", listed=_look_at(source)))
            log(f"{name} could not be loaded: {error}")
    if not only_first and not any(each.model for each in registry):
        raise UserError("none of the models could be loaded")
    return registry


def _look_at(source: str | Path) -> Listed | None:
    """What it is like, as far as that can be read."""
    try:
        return describe(find_model(source))
    except UserError:
        return None


def unique_name(source: str | Path, taken: Container[str]) -> str:
    """Its own, numbered where that is taken."""
    name = name_of(source)
    numbered = (name if i == 1 else f"{name}-{i}" for i in itertools.count(1))
    return next(free for free in numbered if free not in taken)
