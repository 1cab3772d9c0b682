"""`clearhead models`: the models on this disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.errors import UserError

HEADINGS = ["model", "family", "parameters", "blocks", "heads", "width", "context", "validation loss"]


def models(
    folders: list[Path] = typer.Argument(
        None, metavar="FOLDER", help="Where to look. [default: runs/ and the models kept at home]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the list as JSON."),
) -> None:
    """List the models in runs/ and at home, with their size and how well they learned."""
    from clearhead.files import home

    places = folders or [Path("runs"), home() / "models"]
    for place in folders or []:
        if not place.is_dir():
            raise UserError(f"no such folder: {place}; name a folder that holds models")
    rows = [row for place in places for row in _rows(place)]
    if json:
        print_json(rows)
        return
    if not rows:
        out.print(f"no models in {' or '.join(map(str, places))}; make one: clearhead train my.txt")
        return
    lines = [HEADINGS, *([_cell(row[name]) for name in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        sides = "<<" + ">" * (len(line) - 2)
        cells = zip(line, sides, widths, strict=True)
        out.print("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def _rows(place: Path) -> list[dict[str, Any]]:
    """The place itself, if it is a model, and the models in it."""
    from clearhead.formats.folder import CONFIG, read_label

    rows = []
    for folder in [place, *sorted(place.glob("*"))]:
        if not (folder / CONFIG).is_file():
            continue
        try:
            label = read_label(folder)
        except UserError as error:
            err.print(f"left out: {error}")
            continue
        rows.append(
            {
                "model": str(folder),
                "family": label.family.model_type,
                "parameters": label.config.n_parameter,
                "blocks": label.config.n_block,
                "heads": label.config.n_head,
                "width": label.config.d_model,
                "context": label.config.n_context,
                "validation_loss": (label.training or {}).get("validation_loss"),
            }
        )
    return rows
