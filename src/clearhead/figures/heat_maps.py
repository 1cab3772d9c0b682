"""Heat maps: the numbers at a site, and every head's weights as thumbnails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clearhead.figures.bars import position_bars
from clearhead.figures.pooling import is_matrix, read_pooled
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
    name_all,
    part_of,
)

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

MOST_CELLS = 256  # per side; in a longer text, several tokens share a cell
MOST_FEATURES = 1024
MOST_SMALL = 128  # cells per side of a thumbnail
SMALL_LABELS = 12
READABLE = 0.98  # quantile of the positive weights; larger ones share the darkest color
SCALE = f"color scale: square root of the weight; the largest {1 - READABLE:.0%} share the darkest color"


def heat_map(trace: AnyTrace, site: str, rows: range, title: str | None) -> Figure:
    """A site: a row for each position, a column for each feature or key position."""
    T = trace.ids.shape[1]
    if site.endswith((".mean", ".scale")):
        values = trace.read(site, rows=slice(rows.start, rows.stop)).detach().float().cpu().tolist()
        tokens = trace.tokens[rows.start : rows.stop]
        return position_bars(tokens, values, rows.start, title or site, part_of(rows, T))
    columns = _seen(trace, rows) if is_matrix(site) else None
    size = -(-len(rows) // MOST_CELLS)
    if columns is not None:
        across = -(-len(columns) // MOST_CELLS)
    else:
        across = -(-trace.read(site, rows=[0]).shape[-1] // MOST_FEATURES)
    value = read_pooled(trace, site, rows, columns, size, across)
    down, wide = (min(n, MOST_LABELS) for n in value.shape)
    canvas = make_canvas(min(14.0, 2.5 + 0.28 * wide), min(12.0, 1.8 + 0.24 * down))
    axes = canvas.add_subplot()
    norm, colors, scale = _colors(site, value)
    drawn = axes.imshow(np.ma.masked_invalid(value), aspect="auto", norm=norm, cmap=colors)
    label(axes, "y", trace.tokens[rows.start : rows.stop], rows.start, size)
    if columns is not None:
        label(axes, "x", trace.tokens[: columns.stop], 0, across)
        axes.set_xlabel("key position", fontsize=8)
        axes.set_ylabel("query position", fontsize=8)
    else:
        axes.set_xlabel("feature" if across == 1 else f"feature, {across} per cell", fontsize=8)
        axes.tick_params(axis="x", labelsize=7)
    notes = (part_of(rows, T), _cells(site, size, across), scale)
    name(axes, title or site, "; ".join(filter(None, notes)))
    beyond: Any = "max" if site.endswith(".weights") else "neither"
    bar = canvas.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02, extend=beyond)
    bar.ax.tick_params(labelsize=7)
    return Figure(canvas)


def thumbnails(trace: Trace, rows: range, title: str | None) -> Figure:
    """Thumbnails of every head's weights: blocks down, heads across."""
    n_block, n_head = trace.config.n_block, trace.config.n_head
    columns = _seen(trace, rows)
    size, across = -(-len(rows) // MOST_SMALL), -(-len(columns) // MOST_SMALL)
    canvas = make_canvas(max(4.0, 1.0 + 1.5 * n_head), max(3.0, 1.2 + 1.5 * n_block))
    for i in range(n_block):
        for j in range(n_head):
            weights = read_pooled(trace, f"block.{i}.head.{j}.weights", rows, columns, size, across)
            axes = canvas.add_subplot(n_block, n_head, i * n_head + j + 1)
            axes.imshow(weights, cmap=ATTENTION, norm=_weights_norm(weights), aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"{i}.{j}", fontsize=7, pad=2)
            if j == 0:
                tokens = trace.tokens[rows.start : rows.stop]
                label(axes, "y", tokens, rows.start, size, most=SMALL_LABELS, font=5)
            if i == n_block - 1:
                label(axes, "x", trace.tokens[: columns.stop], 0, across, most=SMALL_LABELS, font=5)
    shown = (part_of(rows, trace.ids.shape[1]), _cells("weights", size, across))
    note = "\n".join(filter(None, ("; ".join(filter(None, shown)), f"each head has its own scale; {SCALE}")))
    name_all(canvas, title or "attention of each head (block.head)", note)
    return Figure(canvas)


def _seen(trace: AnyTrace, rows: range) -> range:
    """The positions that the rows can attend to."""
    return range(rows.stop if trace.config.causal else trace.ids.shape[1])


def _cells(site: str, size: int, across: int) -> str:
    if size == across == 1:
        return ""
    if site.endswith("weights"):
        return f"each cell: mean fraction of attention from {size} tokens to {across} tokens"
    return f"each cell: the mean of {size} × {across} values"


def _colors(site: str, value: Any) -> tuple[Normalize, str, str]:
    """The color scale, and its description where the color bar does not make it clear."""
    if site.endswith(".weights"):
        return _weights_norm(value), ATTENTION, SCALE
    from matplotlib.colors import Normalize

    finite = value[np.isfinite(value)]
    largest = float(np.abs(finite).max()) if finite.size else 1.0
    return Normalize(-largest, largest), SIGNED, ""


def _weights_norm(weights: Any) -> Normalize:
    """A color scale from 0 to a high quantile of a head's weights, in which small weights are distinguishable."""
    from matplotlib.colors import PowerNorm

    above = weights[weights > 0]
    return PowerNorm(0.5, 0, float(np.quantile(above, READABLE)) if above.size else 1.0, clip=True)
