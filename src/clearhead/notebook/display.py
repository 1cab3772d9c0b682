"""What `show` makes of what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from clearhead.errors import UserError, guess
from clearhead.extras import require
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.indexing import check_index
from clearhead.inspect.state_trace import AnyTrace, StateTrace, need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.runtime.quantization import need_exact
from clearhead.server.in_process import InProcessClient, Models, models_of

if TYPE_CHECKING:
    from clearhead.notebook.widget import Explorer

LOWEST = 200  # pixels
# The steps of a head, as the page calls them.
STEPS = ("project", "level", "rotate", "compare", "divide", "mask", "softmax", "weigh", "sum", "write")
Shown = AnyTrace | Comparison[Trace] | LanguageModel


def show(
    what: Shown,
    *,
    text: str | None = None,
    block: int = 0,
    head: int = 0,
    step: int | str = 0,
    height: int | None = None,
) -> Explorer:
    """A widget for a notebook: the last line of a cell shows it.

    A trace opens with its text, and what was edited in it; two that were compared, side by side; a model with
    `text`, or an example. All can be typed over. `block`, `head` and `step` (its number, or its name, such as
    "softmax") say what is open; with a `height` in pixels, the rest of it is scrolled to.
    """
    require("notebook", "a widget")
    from clearhead.notebook.widget import Explorer, Opening

    if text is not None and not isinstance(what, LanguageModel):
        raise UserError("text goes with a model: a trace has its own")
    if height is not None and (not isinstance(height, int) or height < LOWEST):
        raise UserError(f"height = {height!r}: expected pixels, {LOWEST} or more")
    models = _models_of(what)
    for model, _ in models.values():
        need_exact(model.network, "inspecting a model")
    config = next(iter(models.values()))[0].transformer("a view").config
    place = {
        "block": check_index(block, config.n_block, "block"),
        "head": check_index(head, config.n_head, "head"),
        "step": _check_step(step),
    }
    given, ids, edits = _place_of(what, text, models)
    return Explorer(InProcessClient(models), Opening(f"?{urlencode({**given, **place})}", ids, edits), height)


def _check_step(step: int | str) -> int | str:
    if isinstance(step, str) and step not in STEPS:
        raise UserError(f"step = {step!r}: expected one of {', '.join(STEPS)}{guess(step, STEPS)}")
    return step if isinstance(step, str) else check_index(step, len(STEPS), "step")


def _place_of(what: Shown, text: str | None, models: Models) -> tuple[dict[str, str], list[int] | None, int]:
    """What is shown first, the ids of its text, and how many edits were made in it."""
    name, (model, traces) = next(iter(models.items()))
    if not traces:
        return {"model": name, "text": text or ""}, None, 0
    trace = traces[0]
    ids = trace.ids[0].tolist()
    place = {"model": name, "text": model.tokenizer.decode(ids)}
    if isinstance(what, Comparison):
        other = list(models)[-1]
        beside = models[other][0].tokenizer.decode(what.other.ids[0].tolist())
        place |= {"view": "compare", "other": beside, "otherModel": "" if other == name else other}
    return place, ids, len(trace.edits.made)


def _models_of(what: Shown) -> Models:
    """The models by name, each with its traces that are shown: of one text never two."""
    if isinstance(what, LanguageModel):
        return {what.name: (what, ())}
    if isinstance(what, StateTrace):
        need_heads(what, "the explorer")
    if isinstance(what, Trace | Comparison):
        return models_of(what)
    raise UserError(f"show a {type(what).__name__}: expected a trace, two compared ones, or a model")
