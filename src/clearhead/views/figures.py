"""Figures of a trace, as SVG, PNG or PDF: a site, all heads as thumbnails, what each block would say."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from clearhead.errors import UserError
from clearhead.files import disk_errors
from clearhead.inspect.sites import MATRICES
from clearhead.inspect.trace import Trace

FORMATS = ("svg", "png", "pdf")
MOST_LABELS = 48  # along one side; of a longer text every second, third, … token is named
MOST_WORDS = 16  # positions of a lens
ATTENTION = "Purples"  # the colour of attention; what has a sign goes from blue to red
# The same figure is the same file: no date, no random names, and text that can be searched and edited.
STABLE: dict[Any, Any] = {"svg.hashsalt": "clearhead", "svg.fonttype": "none", "font.family": "DejaVu Sans"}


class Figure:
    """A picture that can be saved, and that a notebook shows by itself."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas

    def save(self, path: str | Path) -> None:
        """As SVG, PNG or PDF, by the name's ending."""
        kind = Path(path).suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise UserError(f"{path} ends in {kind!r}: expected one of {', '.join(FORMATS)}")
        with disk_errors(Path(path).parent, "the figure was not saved"):
            Path(path).write_bytes(self._draw(kind))

    def _repr_svg_(self) -> str:
        return self._draw("svg").decode()

    def _draw(self, kind: str) -> bytes:
        out = io.BytesIO()
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        with rc_context(STABLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            self.canvas.savefig(out, format=kind, metadata=dates[kind], bbox_inches="tight", dpi=160)
        return out.getvalue()


def figure(trace: Trace, site: str | None = None) -> Figure:
    """A site as a heat map; without one, where every head looks; for "lens", what each block would say."""
    trace.check_single()
    if site is None:
        return _thumbnails(trace)
    return _lens(trace) if site == "lens" else _heat_map(trace, site)


def _heat_map(trace: Trace, site: str) -> Figure:
    value = trace[site].detach().float().cpu().numpy()
    value = value[:, None] if value.ndim == 1 else value
    is_matrix = site.split(".")[-1] in MATRICES
    rows, columns = value.shape
    canvas = _canvas(
        min(14.0, 2.5 + 0.28 * min(columns, MOST_LABELS)), min(12.0, 1.5 + 0.24 * min(rows, MOST_LABELS))
    )
    axes = canvas.add_subplot()
    drawn = axes.imshow(np.ma.masked_invalid(value), aspect="auto", **_colours(site, value))
    _label(axes, "y", trace.tokens)
    if is_matrix:
        _label(axes, "x", trace.tokens)
        axes.set_xlabel("looked at")
        axes.set_ylabel("looking")
    else:
        axes.set_xlabel("feature")
    axes.set_title(site, loc="left", fontsize=10)
    canvas.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02)
    return Figure(canvas)


def _thumbnails(trace: Trace) -> Figure:
    """A small picture of every head's weights: blocks down, heads across."""
    n_block, n_head = trace.config.n_block, trace.config.n_head
    canvas = _canvas(max(3.0, 1.1 * n_head), max(2.0, 1.2 * n_block))
    for i in range(n_block):
        weights = trace.weights(i).detach().float().cpu().numpy()
        for j in range(n_head):
            axes = canvas.add_subplot(n_block, n_head, i * n_head + j + 1)
            axes.imshow(weights[j], cmap=ATTENTION, vmin=0, vmax=1, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"{i}.{j}", fontsize=7, pad=2)
    canvas.suptitle("where each head looks (block.head)", fontsize=9)
    return Figure(canvas)


def _lens(trace: Trace) -> Figure:
    """For each block and position the likeliest next word, shaded by its probability."""
    lens, first = trace.lens(), max(0, len(trace.tokens) - MOST_WORDS)
    tokens = trace.tokens[first:]
    probabilities = np.zeros((len(lens), len(tokens)))
    canvas = _canvas(1.5 + 0.95 * len(tokens), 1.2 + 0.35 * len(lens))
    axes = canvas.add_subplot()
    for k in range(len(lens)):
        best = lens[k][first:].softmax(-1).max(-1)
        probabilities[k] = best.values.detach().float().cpu().numpy()
        for t, word in enumerate(trace.words(best.indices.tolist())):
            ink = "white" if probabilities[k, t] > 0.6 else "black"
            axes.text(t, k, _plain(word), ha="center", va="center", fontsize=7, color=ink)
    axes.imshow(probabilities, cmap=ATTENTION, vmin=0, vmax=1, aspect="auto")
    _label(axes, "x", tokens)
    axes.set_yticks(range(len(lens)), [f"block {k}" for k in range(len(lens))], fontsize=7)
    axes.set_title("what each block would say next", loc="left", fontsize=10)
    return Figure(canvas)


def _canvas(width: float, height: float) -> Canvas:
    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def _colours(site: str, value: Any) -> dict[str, Any]:
    if site.endswith((".weights", "probabilities")):
        return {"cmap": ATTENTION, "vmin": 0, "vmax": 1}
    largest = float(np.abs(value[np.isfinite(value)]).max()) if np.isfinite(value).any() else 1.0
    return {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}


def _label(axes: Axes, side: str, tokens: Sequence[str]) -> None:
    step = -(-len(tokens) // MOST_LABELS)
    places = list(range(0, len(tokens), step))
    names = [_plain(tokens[i]) for i in places]
    if side == "x":
        axes.set_xticks(places, names, rotation=90, fontsize=7)
    else:
        axes.set_yticks(places, names, fontsize=7)


def _plain(token: str) -> str:
    """A token as it can stand in a picture: spaces seen, nothing read as a formula."""
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥").replace("$", r"\$")
