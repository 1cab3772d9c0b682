"""The loss curve: losses by step, and their plot in the run folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.extras import is_installed
from clearhead.files import write_text
from clearhead.picture import Figure, make_canvas, name
from clearhead.runs.progress import ExponentialAverage
from clearhead.runs.run_metrics import read_metrics

CURVE = "loss.svg"

LONG = 1000  # steps; beyond this the axis is logarithmic
MOST_POINTS = 1000  # points of the training loss, so that the file of a long run stays small
TRAINING, VALIDATION = "#969696", "#6a51a3"


def loss_curve(metrics: Sequence[dict[str, Any]], title: str = "loss") -> Figure:
    """The smoothed training loss and the validation losses by step."""
    smooth = ExponentialAverage()
    training = [(each["step"], smooth(each["loss"])) for each in metrics if _is_number(each.get("loss"))]
    validation = [
        (each["step"], each["validation"]) for each in metrics if _is_number(each.get("validation"))
    ]
    long = max((each["step"] for each in metrics), default=0) > LONG
    canvas = make_canvas(6.4, 3.6)
    axes = canvas.add_subplot()
    shown = [training[i] for i in _spread(len(training), long)]
    notes = []
    if shown:
        axes.plot(*zip(*shown, strict=True), color=TRAINING, linewidth=1.2, label="training, smoothed")
        notes.append(f"{training[-1][0]:,} steps")
    if validation:
        axes.plot(*zip(*validation, strict=True), "o-", color=VALIDATION, markersize=3.5, label="validation")
        step, best = min(validation, key=lambda each: each[1])
        notes.append(f"lowest validation loss {best:.4f}, at step {step:,}")
    if shown or validation:
        axes.legend(fontsize=8, frameon=False)
    if long:
        axes.set_xscale("log")
    axes.set_xlabel("steps", fontsize=8)
    axes.set_ylabel("nats per token", fontsize=8)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    name(axes, title, "; ".join(notes))
    return Figure(canvas)


def draw_losses(folder: Path) -> list[str]:
    """Save the curve beside the model if matplotlib is installed. A failure is returned as a note."""
    if not is_installed("figures"):
        return []
    try:
        write_text(folder / CURVE, loss_curve(read_metrics(folder))._repr_svg_())
    except Exception as error:
        return [f"{CURVE} was not drawn ({' '.join(str(error).split())})"]
    return []


def _spread(count: int, long: bool) -> list[int]:
    """The points to draw: all, or as many as fit, evenly spaced on the axis."""
    if count <= MOST_POINTS:
        return list(range(count))
    places = np.geomspace(1, count, MOST_POINTS) if long else np.linspace(1, count, MOST_POINTS)
    return sorted({round(place) - 1 for place in places.tolist()})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
