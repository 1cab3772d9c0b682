"""Output of a lab or race: saved as a figure, and printed as JSON, CSV or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clearhead.cli.console import print_json, print_text

if TYPE_CHECKING:
    from clearhead.labs.lab import Result


def check_figure(figure: str | None) -> None:
    """Raise an error for a figure name with an unsupported suffix, before any work starts."""
    if figure is not None:
        from clearhead.picture import check_place

        check_place(figure)


def give(result: Result, figure: str | None, json: bool, csv: bool, show: Callable[[Result], object]) -> None:
    """`show` prints for people, unless JSON or CSV is requested."""
    if figure is not None:
        from clearhead.figures.figure import figure as draw

        draw(result).save(figure)
    if json:
        print_json(result.to_dict())
    elif csv:
        print_text(result.to_csv())
    else:
        show(result)
