"""What came out of a lab or a race, as it was asked for: drawn into a file, and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clearhead.cli.console import print_json, print_text

if TYPE_CHECKING:
    from clearhead.labs.lab import Result


def check_figure(figure: str | None) -> None:
    """Refuse a name that no picture can be saved by, before time goes into it."""
    if figure is not None:
        from clearhead.picture import check_place

        check_place(figure)


def give(result: Result, figure: str | None, json: bool, csv: bool, show: Callable[[Result], object]) -> None:
    """`show` is for people, where neither JSON nor CSV was asked for."""
    if figure is not None:
        from clearhead.figures.figure import figure as draw

        draw(result).save(figure)
    if json:
        print_json(result.to_dict())
    elif csv:
        print_text(result.to_csv())
    else:
        show(result)
