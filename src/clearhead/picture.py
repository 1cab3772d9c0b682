"""Figures that can be saved, and what they have in common: canvas, title, labels."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead import processes
from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.files import disk_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SETTINGS = "matplotlibrc"
FORMATS = ("svg", "png", "pdf")
MOST_LABELS = 48  # labels along one side; in a longer text, only every second, third, … token is labeled
ATTENTION = "Purples"  # the colors of attention and probability
SIGNED = "RdBu_r"  # signed values go from blue to red
# Reproducible files: no date, no random ids, and text that can be searched and edited.
STABLE: dict[Any, Any] = {"svg.hashsalt": "clearhead", "svg.fonttype": "none", "font.family": "DejaVu Sans"}


class Figure:
    """A figure that can be saved, and that a notebook displays."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as SVG, PNG or PDF, depending on the suffix of the file name."""
        kind, folder = check_place(path)
        with disk_errors(folder, "the figure was not saved"):
            Path(path).write_bytes(self._draw(kind))

    def _repr_svg_(self) -> str:
        return self._draw("svg").decode()

    def _draw(self, kind: str) -> bytes:
        from matplotlib import rc_context
        from matplotlib.text import Text

        out = io.BytesIO()
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        # The user's settings could have texts set by TeX, which would run another program.
        for text in self.canvas.findobj(Text):
            text.set_usetex(False)
        with rc_context(STABLE | {"text.usetex": False}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            self.canvas.savefig(out, format=kind, metadata=dates[kind], bbox_inches="tight", dpi=160)
        return out.getvalue()


def check_place(path: str | os.PathLike[str]) -> tuple[str, Path]:
    """Raise an error if a figure cannot be saved to this path; return its format and folder."""
    wanted = f"expected a file name that ends in {', '.join('.' + kind for kind in FORMATS)}"
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"a figure cannot be saved to a {type(path).__name__}: {wanted}")
    if not str(path):
        raise UserError(f"the name of the figure is missing: {wanted}")
    kind, folder = Path(path).suffix.removeprefix(".").lower(), Path(path).parent
    if kind not in FORMATS:
        ending = f"ends in .{kind}" if kind else "has no suffix"
        raise UserError(f"{path} {ending}: {wanted}")
    if not folder.exists():
        raise UserError(
            f"the folder {folder} does not exist, so the figure was not saved: create it, or choose another"
        )
    require("figures", "a figure")
    return kind, folder


def require_matplotlib() -> None:
    """Import matplotlib. In a command, it must not find the settings in the working folder, which come before the
    user's own: the folder may be someone else's.
    """
    require("figures", "a figure")
    exists = os.path.exists
    if processes.shielded and "matplotlib" not in sys.modules:
        os.path.exists = lambda path: path != SETTINGS and exists(path)
    try:
        import matplotlib  # noqa: F401
    finally:
        os.path.exists = exists


def make_canvas(width: float, height: float) -> Canvas:
    """A canvas of this size in inches."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def name(axes: Axes, title: str, note: str = "") -> None:
    """Title a figure with what it shows; the note below gives the part shown and the scale."""
    axes.set_title(literal(f"{title}\n{note}" if note else title), loc="left", fontsize=9)


def name_all(canvas: Canvas, title: str, note: str = "") -> None:
    """Like `name`, for a figure with several panels."""
    canvas.suptitle(literal(f"{title}\n{note}" if note else title), fontsize=9)


def label(
    axes: Axes,
    side: str,
    tokens: Sequence[str],
    first: int = 0,
    size: int = 1,
    most: int = MOST_LABELS,
    upright: bool = False,
    font: float = 7,
) -> None:
    """Label the cells along a side with tokens, where each cell covers `size` tokens.

    Unless every token is labeled, labels start with the position; `first` is that of the first token.
    """
    cells = -(-len(tokens) // size)
    step = -(-cells // most)
    places = list(range(0, cells, step))
    starts = [place * size for place in places]
    if step * size == 1:
        names = [plain(token) for token in tokens]
    else:
        names = [f"{first + start} {plain(tokens[start])}" for start in starts]
    if side == "x":
        axes.set_xticks(places, names, rotation=0 if upright else 90, fontsize=font)
    else:
        axes.set_yticks(places, names, fontsize=font)


def plain(token: str) -> str:
    """A token for display: visible spaces, and no math mode."""
    return literal(token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥"))


def literal(text: str) -> str:
    """Text in which no dollar sign starts math mode."""
    return text.replace("$", r"\$")


def part_of(rows: range, T: int) -> str:
    """Describe which positions are shown; empty if all are."""
    if len(rows) == T:
        return ""
    if rows.stop == T:
        return f"the last {len(rows)} of {T} positions"
    return f"positions {rows.start} to {rows.stop - 1} of {T}"
