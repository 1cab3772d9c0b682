"""`clearhead models`: the models on this disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.tables import print_table
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.formats.listing import Listed

HEADINGS = {
    "model": "model",
    "family": "family",
    "kind": "kind",
    "parameters": "parameters",
    "blocks": "blocks",
    "heads": "heads",
    "width": "width",
    "context": "context",
    "validation_loss": "validation loss",
    "bytes": "MB",
    "license": "license",
}
CAN_BE_PULLED = {"name": "can be pulled", "title": "title", "bytes": "MB", "license": "license"}


def models(
    folders: list[Path] = typer.Argument(
        None, metavar="FOLDER", help="Where to look. [default: runs/, the pulled models and the built-in one]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the list as JSON."),
) -> None:
    """List the models in runs/, the pulled ones and the built-in one.

    Shows their size and loss, and the models that can be pulled.

    \b
    For example:
      clearhead models
      clearhead models some/folder --json
    """
    from clearhead.formats.listing import list_models
    from clearhead.formats.places import all_places
    from clearhead.formats.pulled import CATALOG, find

    for place in folders or []:
        if not place.is_dir():
            raise UserError(f"no such folder: {place}; name a folder that contains models")
    places = folders or all_places()
    rows = [_row(each) for each in list_models(places, err.print)]
    others = [
        {"name": model.name, "title": model.title, "bytes": model.size, "license": model.license}
        for model in CATALOG.values()
        if find(model.name) is None
    ]
    if json:
        print_json({"models": rows, "can_be_pulled": others})
        return
    if rows:
        print_table(HEADINGS, rows)
    else:
        out.print(f"no models in {' or '.join(map(str, places))}; train one: clearhead train my.txt")
    if others:
        out.print()
        print_table(CAN_BE_PULLED, others)
        out.print(f"\nto pull one: clearhead pull {others[0]['name']}")


def _row(model: Listed) -> dict[str, Any]:
    return {
        "model": model.name,
        "family": model.family,
        "kind": model.config.kind,
        "parameters": model.config.n_parameter,
        "blocks": getattr(model.config, "n_block", None),
        "heads": getattr(model.config, "n_head", None),
        "width": getattr(model.config, "d_model", None),
        "context": getattr(model.config, "order", model.config.n_context + 1) - 1,
        "validation_loss": model.validation_loss,
        "bytes": model.bytes,
        "license": model.license,
    }
