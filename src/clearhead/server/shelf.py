"""The models that are served, by name. One that could not be loaded stays on the shelf with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import UserError
from clearhead.generate.engine import Engine
from clearhead.language_model import LanguageModel, load
from clearhead.server.faults import Refused


@dataclass(frozen=True)
class Served:
    """A model and the engine that writes with it; or why it is not there."""

    name: str
    model: LanguageModel | None = None
    engine: Engine | None = None
    error: str | None = None


class Shelf:
    """Names are looked up here and nowhere else: none is ever a path."""

    def __init__(self, served: Sequence[Served]) -> None:
        self.served = {each.name: each for each in served}

    def __iter__(self) -> Iterator[Served]:
        return iter(self.served.values())

    def model(self, name: str) -> LanguageModel:
        """The model of that name, or a refusal."""
        found = self.served.get(name)
        if found is None:
            raise Refused(
                404, "model_not_found", f"there is no model {name!r}; there are {self.names()}", "model"
            )
        if found.model is None:
            raise Refused(503, "model_not_loaded", f"{name!r} could not be loaded", "model")
        return found.model

    def engine(self, name: str) -> Engine:
        self.model(name)
        engine = self.served[name].engine
        if engine is None:
            raise Refused(400, "model_cannot_write", f"{name!r} sees both ways and cannot write on", "model")
        return engine

    def names(self) -> str:
        return ", ".join(name for name, each in self.served.items() if each.model is not None)

    def close(self, cancel: bool = False) -> None:
        """End the engines: when what they write is written, or now."""
        for each in self:
            if each.engine is not None:
                each.engine.close(cancel)


def load_models(
    sources: Sequence[str],
    device: str | None = None,
    slots: int = 16,
    queue: int = 256,
    tell: Callable[[str], object] = lambda _: None,
) -> Shelf:
    """Each by its folder, file or pulled name; what is wrong with one does not stop the others."""
    served: list[Served] = []
    for source in sources:
        name = _free_name(source, [each.name for each in served])
        try:
            model = load(source, device)
            engine = Engine(model.network, model.tokenizer, slots, queue) if model.config.causal else None
            served.append(Served(name, model, engine))
            tell(f"{name}: {model.config.n_parameter:,} parameters")
        except UserError as error:
            served.append(Served(name, error=str(error)))
            tell(f"{name} could not be loaded: {error}")
    if not any(each.model for each in served):
        raise UserError("none of the models could be loaded")
    return Shelf(served)


def _free_name(source: str, taken: Sequence[str]) -> str:
    """The last part of where it comes from, in letters that need no care; numbered where that is taken."""
    path = Path(source)
    stem = path.name.removesuffix(".gguf") or path.resolve().name
    name = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII).strip(".-") or "model"
    return next(
        free for i in range(1, len(taken) + 2) if (free := name if i == 1 else f"{name}-{i}") not in taken
    )
