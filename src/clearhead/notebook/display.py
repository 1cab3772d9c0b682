"""`show`: an explorer widget for a trace, a comparison or a model."""

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

MIN_HEIGHT = 200  # pixels
# The steps of a head, as the page names them.
STEPS = ("project", "level", "rotate", "compare", "divide", "cap", "mask", "softmax", "weigh", "sum", "write")
Showable = AnyTrace | Comparison[Trace] | LanguageModel


def show(
    what: Showable,
    *,
    text: str | None = None,
    block: int = 0,
    head: int = 0,
    step: int | str = 0,
    height: int | None = None,
) -> Explorer:
    """Return an explorer widget for a notebook, which displays it if it is the last expression in a cell.

    A trace opens with its text and its edits, a comparison with its two texts side by side, and a model with
    `text` or an example. The text can be changed in the widget. `block`, `head` and `step` (a number or a
    name such as "softmax") select what is shown. With `height` in pixels, the widget scrolls.
    """
    require("notebook", "the widget")
    from clearhead.notebook.widget import Explorer, InitialView

    if text is not None and not isinstance(what, LanguageModel):
        raise UserError("text is only accepted with a model: a trace has its own text")
    if height is not None and (not isinstance(height, int) or height < MIN_HEIGHT):
        raise UserError(f"height = {height!r}: expected {MIN_HEIGHT} pixels or more")
    models = _models_of(what)
    for model, _ in models.values():
        need_exact(model.network, "inspecting a model")
    config = next(iter(models.values()))[0].transformer("a view").config
    selection = {
        "block": check_index(block, config.n_block, "block"),
        "head": check_index(head, config.n_head, "head"),
        "step": _check_step(step),
    }
    location, ids, edits = _location(what, text, models)
    view = InitialView(f"?{urlencode({**location, **selection})}", ids, edits)
    return Explorer(InProcessClient(models), view, height)


def _check_step(step: int | str) -> int | str:
    if isinstance(step, str) and step not in STEPS:
        raise UserError(f"step = {step!r}: expected one of {', '.join(STEPS)}{guess(step, STEPS)}")
    return step if isinstance(step, str) else check_index(step, len(STEPS), "step")


def _location(
    what: Showable, text: str | None, models: Models
) -> tuple[dict[str, str], list[int] | None, int]:
    """Return the page's query parameters, the token ids of the text, and the number of edits."""
    name, (model, traces) = next(iter(models.items()))
    if not traces:
        return {"model": name, **({"text": text} if text else {})}, None, 0
    trace = traces[0]
    ids = trace.ids[0].tolist()
    location = {"model": name, "text": model.tokenizer.decode(ids)}
    if isinstance(what, Comparison):
        other = list(models)[-1]
        other_text = models[other][0].tokenizer.decode(what.other.ids[0].tolist())
        location |= {"view": "compare", "other": other_text, "otherModel": "" if other == name else other}
    return location, ids, len(trace.edits.made)


def _models_of(what: Showable) -> Models:
    """Return the models by name with the traces to show. No model has two traces of the same text."""
    if isinstance(what, LanguageModel):
        return {what.name: (what, ())}
    if isinstance(what, StateTrace):
        need_heads(what, "the explorer")
    if isinstance(what, Trace | Comparison):
        return models_of(what)
    raise UserError(f"cannot show a {type(what).__name__}: expected a trace, a comparison or a model")
