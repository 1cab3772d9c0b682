"""Figures: the right kind of figure for each result."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from clearhead.errors import UserError
from clearhead.figures.bars import difference_bars, head_bars, part_bars
from clearhead.figures.heat_maps import heat_map, thumbnails
from clearhead.figures.lab_results import draw_result
from clearhead.figures.tables import lens_table, sweep_table, token_table
from clearhead.inspect.attribution import Attribution, ScoreAttribution
from clearhead.inspect.base_trace import BaseTrace
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.lens import Lens
from clearhead.inspect.state_trace import AnyTrace, StateTrace, need_heads
from clearhead.inspect.trace import Trace
from clearhead.labs.heads import HeadScores
from clearhead.labs.lab import Result
from clearhead.picture import Figure, require_matplotlib

Drawable = AnyTrace | HeadScores | Attribution | ScoreAttribution | Lens | Comparison[Trace] | Result
MatrixLike = Tensor | np.ndarray[Any, Any] | list[list[float]]


def figure(
    of: Drawable,
    what: str | MatrixLike | None = None,
    *,
    title: str | None = None,
    rows: slice | range | None = None,
    around: float | None = None,
) -> Figure:
    """Draw a result.

    For a trace, `what` is a site's name, "lens" for the logit lens, or a sweep's table, colored `around` the
    unedited value (default: the median); by default, the attention of every head is drawn. Results of `heads`
    are drawn as bars, for one score if `what` names it; those of `attribute`, `why` and `compare` as bars; and
    those of a lab as a panel for each part. `title` replaces the default title; `rows` selects positions of a
    trace or lens.
    """
    require_matplotlib()
    if rows is not None and (not isinstance(of, Trace | StateTrace | Lens) or _is_table(what)):
        raise UserError("`rows` applies to a trace, its sites and its lens: omit it here")
    if around is not None and not _is_table(what):
        raise UserError("`around` applies to a sweep's table, as in figure(trace, table, around=1.5)")
    if isinstance(of, HeadScores):
        if what is not None and not isinstance(what, str):
            raise UserError(f"to draw one head score, give its name: {', '.join(of.kinds)}")
        return head_bars(of, what, title)
    if isinstance(of, Trace | StateTrace):
        of.check_single()
        return _of_trace(of, what, title, rows, around)
    if what is not None and isinstance(of, Attribution | ScoreAttribution | Lens | Comparison | Result):
        raise UserError(f"{type(of).__name__} is drawn as a whole: omit {_short(what)}")
    if isinstance(of, Attribution | ScoreAttribution):
        return part_bars(of, title)
    if isinstance(of, Comparison):
        return difference_bars(of, title)
    if isinstance(of, Result):
        return draw_result(of, title)
    if isinstance(of, Lens):
        of.trace.check_single()
        return lens_table(of, _chosen(of.trace, rows), title)
    raise UserError(
        f"{_short(of)} cannot be drawn: expected a trace (alone, or with a site's name, 'lens' or a sweep's "
        "table), or the result of lens, attribute, why, compare, heads or a lab"
    )


def _of_trace(trace: AnyTrace, what: Any, title: str | None, rows: Any, around: float | None) -> Figure:
    chosen = _chosen(trace, rows)
    everything = range(trace.ids.shape[1])
    if what is None:
        return thumbnails(need_heads(trace, "a picture of every head"), chosen or everything, title)
    if _is_table(what):
        return sweep_table(need_heads(trace, "a sweep"), what, around, title)
    if not isinstance(what, str):
        raise UserError(
            f"{_short(what)} is not part of a trace: expected a site's name, 'lens' or a sweep's table"
        )
    if what == "lens":
        return lens_table(need_heads(trace, "a lens").lens(), chosen, title)
    if what in ("logits_raw", "logits", "probabilities"):
        return token_table(trace, what, chosen, title)
    return heat_map(trace, what, chosen or everything, title)


def _is_table(what: Any) -> bool:
    return isinstance(what, Tensor | np.ndarray | list)


def _chosen(trace: BaseTrace, rows: Any) -> range | None:
    """The requested positions."""
    if rows is None:
        return None
    T = trace.ids.shape[1]
    if isinstance(rows, slice):
        rows = range(*rows.indices(T))
    if not isinstance(rows, range) or rows.step != 1 or not 0 <= rows.start < rows.stop <= T:
        raise UserError(f"rows = {rows}: expected some of the positions 0 to {T - 1}, such as slice(0, {T})")
    return rows


def _short(value: Any) -> str:
    shown = repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return shown if len(shown) < 40 else f"{shown[:36]}…'"
