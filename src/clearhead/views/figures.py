"""Figures, as SVG, PNG or PDF: a site, all heads as thumbnails or bars, what each block would say, …"""

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
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import disk_errors
from clearhead.inspect.attribution import Attribution, Why
from clearhead.inspect.sites import MATRICES
from clearhead.inspect.trace import Trace
from clearhead.labs.heads import HeadScores

FORMATS = ("svg", "png", "pdf")
MOST_LABELS = 48  # along one side; of a longer text every second, third, … token is named
MOST_BARS = 24
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


def figure(of: Trace | HeadScores | Attribution | Why, what: str | Tensor | None = None) -> Figure:
    """A picture of what was computed.

    Of a trace: a site as a heat map; without one, where every head looks; for "lens", what each block would
    say; for a sweep's table, that table. Of what `heads`, `attribute` and `why` give: bars.
    """
    if isinstance(of, HeadScores):
        return _head_bars(vars(of))
    if isinstance(of, Attribution):
        return _part_bars(of.top(MOST_BARS), f"what adds up to the logit {of.total:.2f}")
    if isinstance(of, Why):
        pairs = [(f"{query} → {key}", value) for query, key, value in of.top(MOST_BARS)]
        return _part_bars(pairs, f"what adds up to the score {of.total:.2f}")
    of.check_single()
    if what is None:
        return _thumbnails(of)
    if isinstance(what, Tensor):
        return _sweep_table(of, what)
    return _lens(of) if what == "lens" else _heat_map(of, what)


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


def _head_bars(kinds: dict[str, Tensor]) -> Figure:
    """For each kind of score a row of bars, one a head, the heads of a block in one shade."""
    canvas = _canvas(10.0, 1.3 * len(kinds) + 0.6)
    panels = canvas.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (kind, scores) in zip(panels, kinds.items(), strict=True):
        n_block, n_head = scores.shape
        shades = np.repeat(["#6a51a3", "#9e9ac8"] * n_block, n_head)[: scores.numel()]
        axes.bar(range(scores.numel()), scores.flatten().tolist(), color=shades)
        axes.set_ylim(0, 1)
        axes.set_ylabel(kind, fontsize=8)
        axes.tick_params(labelsize=7)
        best = int(scores.argmax())
        name = f"{best // n_head}.{best % n_head}: {scores.max():.2f}"
        axes.text(best, min(0.84, scores.max().item()), name, fontsize=7, ha="center", va="bottom")
    step = -(-n_block * n_head // MOST_LABELS)
    places = list(range(0, n_block * n_head, step))
    names = [f"{place // n_head}.{place % n_head}" for place in places]
    panels[-1].set_xticks(places, names, rotation=90, fontsize=6)
    panels[-1].set_xlabel("block.head", fontsize=8)
    canvas.suptitle("how much of its weight each head gives", fontsize=9)
    return Figure(canvas)


def _part_bars(parts: list[tuple[str, float]], title: str) -> Figure:
    """The largest parts of a sum as bars to the right, or to the left where they take away."""
    canvas = _canvas(7.0, 1.0 + 0.24 * len(parts))
    axes = canvas.add_subplot()
    values = [value for _, value in parts]
    axes.barh(range(len(parts)), values, color=["#b2182b" if value > 0 else "#2166ac" for value in values])
    axes.set_yticks(range(len(parts)), [name for name, _ in parts], fontsize=7)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_title(title, loc="left", fontsize=10)
    return Figure(canvas)


def _sweep_table(trace: Trace, table: Tensor) -> Figure:
    """A sweep's blocks × heads or blocks × positions."""
    n_block, n_head, T = trace.config.n_block, trace.config.n_head, trace.ids.shape[1]
    if tuple(table.shape) not in ((n_block, n_head), (n_block, T)):
        shape = "×".join(map(str, table.shape))
        raise UserError(
            f"the table is {shape}, expected {n_block}×{n_head} (heads) or {n_block}×{T} (positions)"
        )
    value, by_head = table.detach().float().cpu().numpy(), table.shape[1] == n_head
    canvas = _canvas(2.5 + 0.4 * min(value.shape[1], MOST_LABELS), 1.5 + 0.35 * n_block)
    axes = canvas.add_subplot()
    spread = max(float(np.ptp(value)), 1e-12)
    drawn = axes.imshow(value, aspect="auto", cmap="viridis", vmin=value.min(), vmax=value.min() + spread)
    axes.set_yticks(range(n_block), [str(i) for i in range(n_block)], fontsize=7)
    axes.set_ylabel("block")
    _label(axes, "x", [str(j) for j in range(n_head)] if by_head else trace.tokens)
    axes.set_xlabel("head" if by_head else "position")
    canvas.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02)
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
