"""A report's charts as inline SVG: lines, bars and small heat maps. The page's style sheet colors them by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 22, 10, 42  # margins of a line chart
LABELS, VALUES = 166, 62  # the columns beside horizontal bars
BAR, GAP = 17, 9
CELL, MOST_CELLS = 22, 330  # side of a head's cell, and the height or width of all of them
LABELED = 15  # smallest side of a cell at which every cell is labeled; of smaller ones, every fifth is
TICKS = 5
NO_NUMBERS = "There is nothing to draw: the values are not finite."
LONGEST = 22  # characters of a label

Format = Callable[[float], str]
Scale = Callable[[float], float]  # from a value to pixels
BarGroup = tuple[str, Sequence[tuple[str, float]]]  # a label, and the role and value of each bar


@dataclass(frozen=True)
class Series:
    """A line, or one of several bars side by side. `role` is its class in the style sheet."""

    name: str
    role: str
    points: Sequence[tuple[float, float]]
    dots: bool = True


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and its range. By default, it covers the points."""

    name: str
    limits: tuple[float, float] | None = None
    logarithmic: bool = False
    show: Format = "{:g}".format

    def scale(self, values: Sequence[float], start: float, stop: float) -> tuple[Scale, list[float]]:
        """The function that maps values to pixels, and the ticks."""
        low, high = self.limits or (min(values), max(values))
        if self.logarithmic:
            ticks = [each for each in _log_ticks(low, high) if low <= each <= high]
            low, high = math.log(low), math.log(high)
            span = (high - low) or 1.0
            return lambda x: start + (stop - start) * (math.log(x) - low) / span, ticks
        step = _step(high - low or abs(high) or 1.0)
        if self.limits is None:
            low, high = math.floor(low / step) * step, math.ceil(high / step) * step
        span = (high - low) or 1.0
        ticks = [low + i * step for i in range(round(span / step) + 1) if low + i * step <= high * (1 + 1e-9)]
        return lambda x: start + (stop - start) * (x - low) / span, ticks


def line_chart(name: str, series: Sequence[Series], across: Axis, up: Axis, diagonal: bool = False) -> str:
    """Lines with a grid; with `diagonal`, also the line where both axes have the same value.

    Points that are not finite are left out; if none remain, a line of text says so.
    """
    series = [replace(each, points=[point for point in each.points if _is_finite(*point)]) for each in series]
    if not any(each.points for each in series):
        return _svg(name, WIDTH, 2 * BAR, [_text(WIDTH / 2, BAR, NO_NUMBERS)])
    x, x_ticks = across.scale([p for each in series for p, _ in each.points], LEFT, WIDTH - RIGHT)
    y, y_ticks = up.scale([p for each in series for _, p in each.points], HEIGHT - BOTTOM, TOP)
    parts = []
    for tick in y_ticks:
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "rule"))
        parts.append(_text(LEFT - 7, y(tick) + 4, up.show(tick), "end"))
    for tick in x_ticks:
        parts.append(_line(x(tick), HEIGHT - BOTTOM, x(tick), HEIGHT - BOTTOM + 4, "rule"))
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 17, across.show(tick)))
    if diagonal:
        low, high = x_ticks[0], x_ticks[-1]
        parts.append(_line(x(low), y(low), x(high), y(high), "diagonal"))
    for each in series:
        places = [(x(a), y(b)) for a, b in each.points]
        joined = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline class="line {each.role}" points="{joined}"/>')
        if each.dots:
            parts += [
                f'<circle class="dot {each.role}" cx="{a:.1f}" cy="{b:.1f}" r="3.2"/>' for a, b in places
            ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, across.name))
    parts.append(
        f'<text class="name" text-anchor="middle" transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) '
        f'rotate(-90)">{escape(up.name)}</text>'
    )
    return _svg(name, WIDTH, HEIGHT, parts)


def bar_chart(name: str, groups: Sequence[BarGroup], show: Format) -> str:
    """Horizontal bars from 0: for each group its label, and the role and the value of each bar."""
    finite = [value for _, bars in groups for _, value in bars if _is_finite(value)]
    longest = max(finite, default=0) or 1.0
    room, y, parts = WIDTH - LABELS - VALUES, 4.0, []
    for label, bars in groups:
        middle = y + len(bars) * BAR / 2 + 4
        parts.append(_text(LABELS - 8, middle, shorten(label), "end", "label"))
        for role, value in bars:
            width = max(1.0, room * value / longest) if _is_finite(value) else 1.0
            parts.append(
                f'<rect class="bar {role}" x="{LABELS}" y="{y + 1:.1f}" width="{width:.1f}" height="{BAR - 2}" rx="2"/>'
            )
            parts.append(_text(LABELS + width + 6, y + BAR / 2 + 4, show(value), "start", "label"))
            y += BAR
        y += GAP
    return _svg(name, WIDTH, round(y), parts)


def heat_map(name: str, scores: Sequence[Sequence[float]], role: str) -> str:
    """A cell for each head, from 0 to 1: blocks from top to bottom, heads from left to right."""
    columns = max(len(row) for row in scores)
    side = max(3, min(CELL, MOST_CELLS // max(columns, len(scores))))
    every = 1 if side >= LABELED else 5
    parts = []
    for block, row in enumerate(scores):
        if block % every == 0:
            parts.append(_text(20, 18 + block * side + side / 2 + 4, str(block), "end"))
        for head, score in enumerate(row):
            place = f'x="{26 + head * side}" y="{18 + block * side}" width="{side - 1}" height="{side - 1}"'
            parts.append(f'<rect class="cell" {place}/>')
            parts.append(f'<rect class="bar {role}" {place} fill-opacity="{_opacity(score):.3f}"/>')
    parts += [_text(26 + head * side + side / 2, 12, str(head)) for head in range(0, columns, every)]
    return _svg(name, 26 + columns * side + 2, 20 + len(scores) * side, parts)


def _is_finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _opacity(score: float) -> float:
    return min(1.0, max(0.0, score)) if _is_finite(score) else 0.0


def shorten(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _svg(name: str, width: float, height: float, parts: Sequence[str]) -> str:
    said = escape(name)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{said}">'
        f"{''.join(parts)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, role: str) -> str:
    return f'<line class="{role}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", role: str = "name") -> str:
    return f'<text class="{role}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _step(span: float) -> float:
    """The spacing that gives about `TICKS` ticks: 1, 2 or 5 times a power of ten."""
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    """Ticks at powers of ten and, if the axis spans fewer than three of them, at two and five times each."""
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [each * 10.0**power for power in range(first, last + 1) for each in steps]
