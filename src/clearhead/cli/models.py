"""`clearhead models`: the models on this disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.model.config import Config

HEADINGS = {
    "model": "model",
    "family": "family",
    "parameters": "parameters",
    "blocks": "blocks",
    "heads": "heads",
    "width": "width",
    "context": "context",
    "validation_loss": "validation loss",
    "bytes": "MB",
    "licence": "licence",
}
CAN_BE_PULLED = {"name": "can be pulled", "title": "title", "bytes": "MB", "licence": "licence"}
TO_THE_LEFT = ("model", "family", "licence", "name", "title", "run", "state")


def models(
    folders: list[Path] = typer.Argument(
        None, metavar="FOLDER", help="Where to look. [default: runs/ and the models kept at home]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the list as JSON."),
) -> None:
    """List the models in runs/ and at home, their size and how well they learned, and what can be pulled."""
    from clearhead.formats.pulled import CATALOGUE, find

    for place in folders or []:
        if not place.is_dir():
            raise UserError(f"no such folder: {place}; name a folder that holds models")
    places = folders or usual_places()
    rows = find_models(places)
    others = [
        {"name": model.name, "title": model.title, "bytes": model.size, "licence": model.licence}
        for model in CATALOGUE.values()
        if find(model.name) is None
    ]
    if json:
        print_json({"models": rows, "can_be_pulled": others})
        return
    if rows:
        print_table(HEADINGS, rows)
    else:
        out.print(f"no models in {' or '.join(map(str, places))}; make one: clearhead train my.txt")
    if others:
        out.print()
        print_table(CAN_BE_PULLED, others)
        out.print(f"\nto pull one: clearhead pull {others[0]['name']}")


def usual_places() -> list[Path]:
    from clearhead.files import home

    return [Path("runs"), home() / "models"]


def find_models(places: list[Path]) -> list[dict[str, Any]]:
    """The models there, each with the name it can be loaded by and what it is like."""
    return [row for place in places for row in [*_folders(place), *_ggufs(place)]]


def print_table(headings: dict[str, str], rows: list[dict[str, Any]]) -> None:
    lines = [list(headings.values()), *([_cell(name, row[name]) for name in headings] for row in rows)]
    sides = ["<" if name in TO_THE_LEFT else ">" for name in headings]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, sides, widths, strict=True)
        out.print("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip())


def _cell(name: str, value: object) -> str:
    if name == "bytes" and isinstance(value, int):
        return f"{value / 1e6:,.1f}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def _folders(place: Path) -> list[dict[str, Any]]:
    """The place itself, if it is a model, and the models in it."""
    from clearhead.formats.folder import CONFIG, read_label
    from clearhead.formats.shards import WEIGHTS

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
                **_described(label.family.model_type, label.config),
                "validation_loss": (label.training or {}).get("validation_loss"),
                "bytes": _size(folder / WEIGHTS),
                "licence": None,  # a folder does not say
            }
        )
    return rows


def _ggufs(place: Path) -> list[dict[str, Any]]:
    """The GGUF files in the place and in the folders in it, a pulled one by its name."""
    from clearhead.formats.gguf.file import GGUFFile
    from clearhead.formats.gguf.model import read_config
    from clearhead.formats.pulled import CATALOGUE, find

    pulled = {find(name): model for name, model in CATALOGUE.items()}
    rows = []
    for path in sorted([*place.glob("*.gguf"), *place.glob("*/*.gguf")]):
        model = pulled.get(path)
        try:
            with GGUFFile.open(path) as file:
                family, config = read_config(file)
        except UserError as error:
            err.print(f"left out: {error}")
            continue
        licence = file.metadata.get("general.license")
        rows.append(
            {
                "model": model.name if model else str(path),
                **_described(family, config),
                "validation_loss": None,
                "bytes": _size(path),
                "licence": model.licence if model else licence if isinstance(licence, str) else None,
            }
        )
    return rows


def _described(family: str, config: Config) -> dict[str, Any]:
    return {
        "family": family,
        "parameters": config.n_parameter,
        "blocks": config.n_block,
        "heads": config.n_head,
        "width": config.d_model,
        "context": config.n_context,
    }


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
