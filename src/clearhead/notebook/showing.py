"""What `show` makes of what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from clearhead.errors import UserError
from clearhead.inspect.choice import check_index
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.notebook.routes import Routes

if TYPE_CHECKING:
    from clearhead.notebook.widget import Explorer

LOWEST = 200  # pixels


def show(
    what: Trace | Comparison | LanguageModel,
    *,
    text: str | None = None,
    block: int = 0,
    head: int = 0,
    step: int = 0,
    height: int | None = None,
) -> Explorer:
    """A widget for a notebook: the last line of a cell shows it.

    A trace opens with its text, and what was edited in it; two that were compared stand one below the other; a
    model opens with `text`, or an example. All can be typed over. `block`, `head` and `step` say what is open;
    with a `height` in pixels, the rest of it is scrolled to.
    """
    try:
        from clearhead.notebook.widget import Explorer, Opening
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets"):
            raise
        raise UserError("a widget needs anywidget: pip install 'clearhead[notebook]'") from None
    if text is not None and not isinstance(what, LanguageModel):
        raise UserError("text goes with a model: a trace has its own")
    if height is not None and (not isinstance(height, int) or height < LOWEST):
        raise UserError(f"height = {height!r}: expected pixels, {LOWEST} or more")
    models = _models_of(what)
    config = next(iter(models.values()))[0].config
    place = {
        "block": check_index(block, config.n_block, "block"),
        "head": check_index(head, config.n_head, "head"),
        "step": step,
    }
    openings = [
        Opening("?" + urlencode({"model": name, "text": text or "", **place}))
        for name, (_, traces) in models.items()
        if not traces
    ]
    for name, (model, traces) in models.items():
        for trace in traces:
            ids = trace.ids[0].tolist()
            query = urlencode({"model": name, "text": model.tokenizer.decode(ids), **place})
            openings.append(Opening(f"?{query}", ids, len(trace.edits.made)))
    return Explorer(Routes(models), openings, height)


def _models_of(what: Trace | Comparison | LanguageModel) -> dict[str, tuple[LanguageModel, tuple[Trace, ...]]]:
    """The models by name, each with the traces of it that are shown."""
    if isinstance(what, LanguageModel):
        return {"model": (what, ())}
    if isinstance(what, Trace):
        return {"model": (_model_of(what), (what,))}
    if isinstance(what, Comparison):
        one, other = what.one, what.other
        if one.network is other.network:
            return {"model": (_model_of(one), (one, other))}
        return {"one": (_model_of(one), (one,)), "other": (_model_of(other), (other,))}
    raise UserError(f"show a {type(what).__name__}: expected a trace, two compared ones, or a model")


def _model_of(trace: Trace) -> LanguageModel:
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    return LanguageModel(trace.network, trace.tokenizer)
