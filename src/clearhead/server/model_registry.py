"""The served models by name: loaded, loading, available on disk, or failed to load."""

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
from clearhead.generate.sampling import QUEUE, SLOTS
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel, load
from clearhead.server.errors import APIError

LoadState = Literal["loaded", "loading", "not loaded", "failed"]


@dataclass(frozen=True)
class ServedModel:
    """A model and the engine that generates with it, or the reason why it is not loaded."""

    name: str
    model: LanguageModel | None = None
    engine: Engine | None = None
    error: str | None = None
    listed: Listed | None = None  # its path, which is never sent to clients, and its description
    loading: bool = False
    traces: tuple[Trace, ...] = ()  # created in Python; requests for the same text reuse them

    @property
    def state(self) -> LoadState:
        if self.model is not None:
            return "loaded"
        return "failed" if self.error is not None else "loading" if self.loading else "not loaded"

    @property
    def is_snapshot(self) -> bool:
        """Whether this is a snapshot taken during training."""
        return SNAPSHOT in self.name

    @property
    def generating(self) -> bool:
        """Whether the engine has requests running or waiting."""
        return self.engine is not None and self.engine.running + self.engine.waiting > 0


class ModelRegistry:
    """The only place where a model's name is resolved: a name is never used as a path."""

    def __init__(self, served: Sequence[ServedModel], plain_chat: bool = True) -> None:
        """With `plain_chat`, models without a chat template reply to conversations, which they see as plain text."""
        self.plain_chat = plain_chat
        self.served = {each.name: each for each in served}
        self._clock = itertools.count()
        self.last_use: Counter[str] = Counter()  # by `_clock`
        self.users: Counter[str] = Counter()  # running requests that inspect a model

    def add(self, served: ServedModel) -> None:
        """Add a model, or replace the one with the same name."""
        self.served[served.name] = served

    @contextmanager
    def in_use(self, *names: str) -> Iterator[None]:
        """Keep these models loaded inside the block."""
        self.users.update(names)
        try:
            yield
        finally:
            self.users.subtract(names)
            for name in names:
                if not self.users[name]:
                    del self.users[name]

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self.served.values()))  # a copy: another thread may add a model meanwhile

    def model(self, name: str) -> LanguageModel:
        """Return the model with this name, or raise APIError if it does not exist or is not loaded."""
        served = self.served.get(name)
        if served is None:
            message = f"model {name!r} does not exist; loaded models: {self.loaded_names()}"
            raise APIError(404, "model_not_found", message, "model", name=name)
        if served.model is None and served.error is not None:
            raise APIError(503, "model_not_loaded", f"{name!r} could not be loaded", "model", name=name)
        if served.model is None:
            message = f"{name!r} is not loaded; load it with POST /api/open"
            raise APIError(503, "model_not_open", message, "model")
        self.last_use[name] = next(self._clock)
        return served.model

    def trace(self, name: str, ids: list[int]) -> Trace | None:
        """Return the trace of this text that was made in Python, if there is one."""
        return next((each for each in self.served[name].traces if each.ids[0].tolist() == ids), None)

    def engine(self, name: str) -> Engine:
        self.model(name)
        engine = self.served[name].engine
        if engine is None:
            message = f"{name!r} is bidirectional and cannot generate text"
            raise APIError(400, "model_cannot_write", message, "model")
        return engine

    def loaded_names(self) -> str:
        return ", ".join(name for name, each in self.served.items() if each.model is not None)

    def cancel_all(self) -> None:
        """Cancel all generations without waiting for them to end."""
        for each in self:
            if each.engine is not None:
                each.engine.stop(cancel=True)

    def close(self, cancel: bool = False) -> None:
        """Stop the engines, after their running generations finish or, with `cancel`, now."""
        for each in self:
            if each.engine is not None:
                each.engine.close(cancel)


@dataclass(frozen=True)
class LoadOptions:
    """How models are loaded for serving."""

    device: str | None = None
    slots: int = SLOTS
    queue: int = QUEUE
    plain_chat: bool = True

    def load(self, name: str, source: str | Path) -> ServedModel:
        """Load a model from its folder or file, or by the name of a pulled model."""
        path = find_model(source)
        listed, model = describe(path), load(path, self.device)
        causal = model.config.causal
        engine = Engine(model.network, model.tokenizer, self.slots, self.queue) if causal else None
        return ServedModel(name, model, engine, listed=listed)


def load_models(
    sources: Sequence[str | Path],
    options: LoadOptions,
    log: Callable[[str], object] = lambda _: None,
    only_first: bool = False,
) -> ModelRegistry:
    """Load models from folders, files or names of pulled models; one that fails to load does not stop the others.

    With `only_first`, load the first model that can be loaded, and none if all fail.
    """
    registry = ModelRegistry([], options.plain_chat)
    for source in sources:
        if only_first and registry.served:
            break
        name = unique_name(source, registry.served)
        try:
            served = options.load(name, source)
            assert served.model is not None
            registry.add(served)
            log(f"{name}: {served.model.config.n_parameter:,} parameters")
        except UserError as error:
            if len(sources) == 1 and not only_first:
                raise
            if not only_first:
                registry.add(ServedModel(name, error="could not be loaded", listed=_try_describe(source)))
            log(f"{name} could not be loaded: {error}")
    if not only_first and not any(each.model for each in registry):
        raise UserError("none of the models could be loaded")
    return registry


def _try_describe(source: str | Path) -> Listed | None:
    try:
        return describe(find_model(source))
    except UserError:
        return None


def unique_name(source: str | Path, taken: Container[str]) -> str:
    """Return the source's name, with a number appended if it is taken."""
    name = name_of(source)
    candidates = (name if i == 1 else f"{name}-{i}" for i in itertools.count(1))
    return next(candidate for candidate in candidates if candidate not in taken)
