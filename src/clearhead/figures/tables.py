"""Tables of tokens: the logit lens, the most likely next tokens, and a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.base_trace import BaseTrace
from clearhead.inspect.lens import Lens
from clearhead.inspect.state_trace import AnyTrace
from clearhead.inspect.trace import Trace
from clearhead.picture import (
    ATTENTION,
    MOST_LABELS,
    SIGNED,
    Figure,
    label,
    make_canvas,
    name,
    part_of,
    plain,
)

MOST_POSITIONS = 16  # shown by default in a table of tokens
LONGEST_TOKEN = 12  # characters in a cell
MOST_TOKENS = 36  # columns of next tokens
TOKENS_EACH = 12  # most likely tokens considered per position


def lens_table(lens: Lens, rows: range | None, title: str | None) -> Figure:
    """The logit lens: for each block and position, the most likely next token, shaded by its probability."""
    trace, n_block = lens.trace, len(lens)
    rows = _readable(trace, rows)
    probabilities = np.zeros((n_block, len(rows)))
    canvas = make_canvas(2.2 + 0.8 * len(rows), 1.6 + (0.75 if n_block <= 8 else 0.45) * n_block)
    axes = canvas.add_subplot()
    for k in range(n_block):
        best = lens[k][rows.start : rows.stop].softmax(-1).max(-1)
        probabilities[k] = best.values.detach().float().cpu().numpy()
        for t, token in enumerate(trace.token_texts(best.indices.tolist())):
            ink = "white" if probabilities[k, t] > 0.6 else "black"
            shown = f"{_short(token)}\n{probabilities[k, t]:.2f}"
            axes.text(t, k, shown, ha="center", va="center", fontsize=8, color=ink)
    drawn = axes.imshow(probabilities, cmap=ATTENTION, vmin=0, vmax=1, aspect="auto")
    label(axes, "x", trace.tokens[rows.start : rows.stop], font=9)
    axes.set_xlabel("after this token", fontsize=8)
    axes.set_yticks(range(n_block), [f"block {k}" for k in range(n_block)], fontsize=9)
    name(axes, title or "logit lens: each block's prediction", part_of(rows, trace.ids.shape[1]))
    bar = canvas.colorbar(drawn, ax=axes, fraction=0.03, pad=0.01)
    bar.set_label("probability", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return Figure(canvas)


def token_table(trace: AnyTrace, site: str, rows: range | None, title: str | None) -> Figure:
    """Logits or probabilities of the most likely next tokens: a row per position, a column per token."""
    rows = _readable(trace, rows)
    values = trace.read(site, rows=slice(rows.start, rows.stop)).detach().float().cpu()
    ids = likeliest(values)
    shown = values[:, ids].numpy()
    canvas = make_canvas(2.8 + 0.3 * len(ids), 1.9 + 0.26 * len(rows))
    axes = canvas.add_subplot()
    largest = max(float(np.abs(shown).max()), 1e-12)
    lowest, colors = (0.0, ATTENTION) if site == "probabilities" else (-largest, SIGNED)
    drawn = axes.imshow(shown, aspect="auto", cmap=colors, vmin=lowest, vmax=largest)
    label(axes, "y", trace.tokens[rows.start : rows.stop])
    axes.set_ylabel("after this token", fontsize=8)
    axes.set_xticks(
        range(len(ids)), [_short(token) for token in trace.token_texts(ids)], rotation=90, fontsize=7
    )
    axes.set_xlabel("next token", fontsize=8)
    notes = (
        part_of(rows, trace.ids.shape[1]),
        f"the {len(ids)} most likely of {trace.config.n_vocab} tokens",
    )
    name(axes, title or site, "; ".join(filter(None, notes)))
    canvas.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02).ax.tick_params(labelsize=7)
    return Figure(canvas)


def likeliest(values: Tensor) -> list[int]:
    """The most likely token at each position, then the second most likely, and so on, up to MOST_TOKENS in all;
    ordered by the position at which each is most likely.
    """
    order = values.topk(min(TOKENS_EACH, values.shape[-1]), dim=-1)
    chosen: dict[int, None] = {}
    for rank in range(order.indices.shape[1]):
        by_value = order.values[:, rank].argsort(descending=True)
        for token in order.indices[by_value, rank].tolist():
            if len(chosen) < MOST_TOKENS:
                chosen[token] = None
    ids = list(chosen)
    places = values[:, ids].argmax(0)
    return [ids[i] for i in torch.argsort(places, stable=True).tolist()]


def sweep_table(trace: Trace, table: Any, around: float | None, title: str | None) -> Figure:
    """A sweep's blocks × heads or blocks × positions, in diverging colors."""
    from matplotlib.colors import Normalize

    value = _numbers(table)
    n_block, n_head, T = trace.config.n_block, trace.config.n_head, trace.ids.shape[1]
    if value.shape not in ((n_block, n_head), (n_block, T)):
        shape = "×".join(map(str, value.shape))
        raise UserError(
            f"the table is {shape}, expected {n_block}×{n_head} (heads) or {n_block}×{T} (positions)"
        )
    by_head = value.shape[1] == n_head
    finite = value[np.isfinite(value)]
    if not finite.size:
        raise UserError("the table has no finite numbers to draw")
    center = float(np.median(finite)) if around is None else float(around)
    reach = max(float(np.abs(finite - center).max()), 1e-12)
    canvas = make_canvas(2.8 + 0.42 * min(value.shape[1], MOST_LABELS), 1.8 + 0.4 * n_block)
    axes = canvas.add_subplot()
    norm = Normalize(center - reach, center + reach)
    drawn = axes.imshow(np.ma.masked_invalid(value), aspect="auto", cmap=SIGNED, norm=norm)
    axes.set_yticks(range(n_block), [str(i) for i in range(n_block)], fontsize=7)
    axes.set_ylabel("block", fontsize=8)
    label(axes, "x", [str(j) for j in range(n_head)] if by_head else trace.tokens, upright=by_head)
    axes.set_xlabel("head" if by_head else "position", fontsize=8)
    white = f"the median, {center:.3g}" if around is None else f"unedited, {center:.3g}"
    changed = "head's output" if by_head else "block's input at each position"
    name(axes, title or f"measured value, with each {changed} changed in turn", f"white: {white}")
    canvas.colorbar(drawn, ax=axes, fraction=0.04, pad=0.02).ax.tick_params(labelsize=7)
    return Figure(canvas)


def _numbers(table: Any) -> Any:
    if isinstance(table, Tensor):
        table = table.detach().float().cpu().numpy()
    try:
        return np.asarray(table, dtype=float)
    except (TypeError, ValueError):
        raise UserError("the table is not numeric: expected the result of sweep") from None


def _readable(trace: BaseTrace, rows: range | None) -> range:
    """The requested positions, or the last ones that fit."""
    T = trace.ids.shape[1]
    if rows is None:
        return range(max(0, T - MOST_POSITIONS), T)
    return range(max(rows.start, rows.stop - MOST_LABELS), rows.stop)


def _short(token: str) -> str:
    return plain(token if len(token) <= LONGEST_TOKEN else token[: LONGEST_TOKEN - 1] + "…")
