"""Bar charts: head scores, parts of a sum, differences between traces, and one number per position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clearhead.errors import UserError
from clearhead.inspect.attribution import Attribution, ScoreAttribution
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.trace import Trace
from clearhead.labs.heads import HeadScores
from clearhead.picture import MOST_LABELS, Figure, label, literal, make_canvas, name, name_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24
MOST_SEPARATE = 256  # bars with gaps between them; more are drawn as one outline
MORE, LESS, REST = "#b2182b", "#2166ac", "#969696"
SHADES = ("#6a51a3", "#9e9ac8")


def head_bars(scores: HeadScores, kind: str | None, title: str | None) -> Figure:
    """A panel of bars for each score, with one bar per head and blocks in alternating shades."""
    kinds = scores.kinds
    if kind is not None:
        if kind not in kinds:
            raise UserError(f"unknown score {kind!r}: expected one of {', '.join(kinds)}")
        kinds = {kind: kinds[kind]}
    canvas = make_canvas(10.0, 1.3 * len(kinds) + 1.0)
    panels = canvas.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
    n_block, n_head = scores.previous.shape
    for axes, (each, table) in zip(panels, kinds.items(), strict=True):
        shades = np.repeat([SHADES[i % 2] for i in range(n_block)], n_head)
        axes.bar(range(table.numel()), table.flatten().tolist(), color=shades)
        best, chance = table.max().item(), scores.chance.get(each)
        axes.set_ylim(0, max(1.3 * best, 1.3 * (chance or 0), 1e-6))
        axes.set_ylabel(each, fontsize=8)
        axes.tick_params(labelsize=7)
        if chance is not None:
            axes.axhline(chance, color="black", linewidth=0.8, linestyle="--")
        i, j = divmod(int(table.argmax()), n_head)
        axes.text(i * n_head + j, best, f"{i}.{j}: {best:.2f}", fontsize=7, ha="center", va="bottom")
    step = -(-n_block * n_head // MOST_LABELS)
    places = list(range(0, n_block * n_head, step))
    panels[-1].set_xticks(places, [f"{p // n_head}.{p % n_head}" for p in places], rotation=90, fontsize=6)
    panels[-1].set_xlabel("block.head", fontsize=8)
    note = "each panel has its own scale" if len(kinds) > 1 else ""
    dashed = "dashed: uniform attention" if scores.chance else ""
    name_all(canvas, title or "attention weight of each head", "; ".join(filter(None, (note, dashed))))
    return Figure(canvas)


def part_bars(of: Attribution | ScoreAttribution, title: str | None) -> Figure:
    """The largest parts of a sum as horizontal bars, negative ones to the left, and the rest as one bar."""
    if isinstance(of, ScoreAttribution):
        parts = [(f"{query} → {key}", value) for query, key, value in of.top(MOST_BARS)]
        what, pieces = "parts of the score", "pairs of parts"
    else:
        parts, what, pieces = of.top(MOST_BARS), "parts of the logit", "parts"
    count, total = of.values.numel(), of.total
    others = count - len(parts)
    note = f"{count} {pieces}; total {total:.2f}"
    if others:
        parts = [
            *parts,
            ("1 other" if others == 1 else f"{others} others", total - sum(value for _, value in parts)),
        ]
        note = f"the {MOST_BARS} largest of {count} {pieces}, and all others as one bar; total {total:.2f}"
    axes = _across(parts, rest=bool(others))
    # The title of the result itself names the token, position and head, if it has them.
    name(axes, title or getattr(of, "title", None) or what, note)
    return Figure(axes.get_figure(root=True))  # type: ignore[arg-type]


def difference_bars(of: Comparison[Trace], title: str | None) -> Figure:
    """The sites at which two traces differ most."""
    parts, count = of.ranking(MOST_BARS), len(of.one.sites())
    axes = _across(parts, rest=False)
    for bar in axes.patches:
        bar.set_color(SHADES[0])  # a distance has no sign
    axes.set_xlabel("‖difference‖ / ‖value‖", fontsize=8)
    aligned = f"{len(of.pairs)} pairs of positions"
    note = f"the {len(parts)} largest of {count} sites; {aligned}"
    name(axes, title or "largest differences between the two texts", note)
    return Figure(axes.get_figure(root=True))  # type: ignore[arg-type]


def position_bars(
    tokens: Sequence[str], values: Sequence[float], first: int, title: str, note: str
) -> Figure:
    """One bar per position."""
    canvas = make_canvas(min(14.0, 1.5 + 0.28 * min(len(tokens), MOST_LABELS)), 2.8)
    axes = canvas.add_subplot()
    if len(values) <= MOST_SEPARATE:
        axes.bar(range(len(values)), values, color=SHADES[0])
    else:
        axes.stairs(values, np.arange(len(values) + 1) - 0.5, fill=True, color=SHADES[0])
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.tick_params(labelsize=7)
    label(axes, "x", tokens, first)
    name(axes, title, note)
    return Figure(canvas)


def _across(parts: list[tuple[str, float]], rest: bool) -> Axes:
    """One bar per part, the first at the top; the last in gray if it stands for the rest."""
    canvas = make_canvas(7.0, 1.2 + 0.24 * len(parts))
    axes = canvas.add_subplot()
    values = [value for _, value in parts]
    colors = [MORE if value > 0 else LESS for value in values]
    if rest:
        colors[-1] = REST
    axes.barh(range(len(parts)), values, color=colors)
    axes.set_yticks(range(len(parts)), [literal(each) for each, _ in parts], fontsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.6)
    return axes
