"""A lab's result as one figure: a panel for each part."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from clearhead.labs.catalog import LABS
from clearhead.labs.lab import Lines, Points, Result, Table, Value
from clearhead.picture import ATTENTION, SIGNED, Figure, literal, make_canvas, name, name_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#6a51a3", "#0f7b8a", "#a8650f", "#c2347f", "#2863cc", "#4d7c0f")
WIDE = 6.4  # inches
MOST_ROWS, MOST_COLUMNS = 48, 24  # drawn per table; the data contains all of them
MOST_LETTERS = 80  # characters in a cell


def draw_result(result: Result, title: str | None = None) -> Figure:
    heights = [_height(part) for part in result.parts]
    canvas = make_canvas(WIDE, sum(heights))
    panels = canvas.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, part in zip(panels, result.parts, strict=True):
        if isinstance(part, Table):
            _draw_table(axes, part)
        elif isinstance(part, Lines):
            _draw_lines(axes, part)
        else:
            _draw_points(axes, part)
        name(axes, part.name)
    usual = LABS[result.lab].title if result.lab in LABS else result.lab
    name_all(canvas, title or usual)
    return Figure(canvas)


def _height(part: Table | Lines | Points) -> float:
    return 0.7 + 0.24 * min(MOST_ROWS, len(part.rows)) if isinstance(part, Table) else 3.2


def _shown_rows(table: Table) -> list[int]:
    """The rows that fit: the first ones or, in a shaded table, those with the largest numbers, in order."""
    if not table.shaded:
        return [*range(len(table.rows))][:MOST_ROWS]
    sizes = [max((abs(_number(value)) for value in line), default=0.0) for line in table.values]
    largest = sorted(range(len(sizes)), key=lambda i: -np.nan_to_num(sizes[i]))[:MOST_ROWS]
    return sorted(largest)


def _draw_table(axes: Axes, table: Table) -> None:
    columns, shown = table.columns[:MOST_COLUMNS], _shown_rows(table)
    rows = [table.rows[i] for i in shown]
    values = [table.values[i][: len(columns)] for i in shown]
    numbers = np.array([[_number(value) for value in line] for line in values])
    peak = float(np.nanmax(np.abs(numbers))) if np.isfinite(numbers).any() else 1.0
    if table.shaded:
        signed = bool((numbers < 0).any())
        colors, low = (SIGNED, -peak) if signed else (ATTENTION, 0.0)
        axes.imshow(np.ma.masked_invalid(numbers), aspect="auto", cmap=colors, vmin=low, vmax=peak or 1.0)
    else:
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        for side in axes.spines.values():
            side.set_visible(False)
    alone = len(columns) == 1 and not table.shaded  # left-align text
    x, aligned = ([-0.5], "left") if alone else ([*range(len(columns))], "center")
    for i, line in enumerate(values):
        for k, value in zip(x, line, strict=True):
            dark = table.shaded and abs(_number(value)) > 0.6 * peak
            ink = "white" if dark else "black"
            axes.text(k, i, _format_value(value), ha=aligned, va="center", fontsize=7, color=ink)
    axes.set_xticks(x, [_format_value(each) for each in columns], fontsize=7, ha=aligned)
    if not table.shaded:
        axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [literal(each) for each in rows], fontsize=7)
    axes.tick_params(length=0)


def _draw_lines(axes: Axes, part: Lines) -> None:
    for i, (each, values) in enumerate(part.lines.items()):
        color = COLORS[i % len(COLORS)]
        y = [np.nan if value is None else value for value in values]
        axes.plot(part.x, y, "o-", markersize=3, color=color, label=literal(each))
        if each in part.spread:
            low, high = zip(*part.spread[each], strict=True)
            axes.fill_between(part.x, low, high, color=color, alpha=0.2, linewidth=0)
    if part.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_xticks(part.x, [f"{x:g}" for x in part.x])
    axes.set_xlabel(literal(part.across), fontsize=8)
    axes.set_ylabel(literal(part.up), fontsize=8)
    axes.tick_params(labelsize=7)
    if len(part.lines) > 1:
        axes.legend(fontsize=7, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_points(axes: Axes, part: Points) -> None:
    for i, group in enumerate(dict.fromkeys(part.groups)):
        of = [k for k, each in enumerate(part.groups) if each == group]
        places = np.array([part.places[k] for k in of])
        axes.scatter(places[:, 0], places[:, 1], s=24, color=COLORS[i % len(COLORS)], label=literal(group))
        for k in of:
            axes.annotate(
                literal(part.labels[k]), part.places[k], fontsize=6, xytext=(4, 3), textcoords="offset points"
            )
    axes.legend(fontsize=7, frameon=False)
    axes.set_xticks([])
    axes.set_yticks([])


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else literal(shorten(str(value), MOST_LETTERS, placeholder=" …"))
