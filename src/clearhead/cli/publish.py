"""`clearhead publish`: the explorer as a folder that any web host can serve."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.options import DEVICE
from clearhead.errors import UserError


def publish(
    folder: Path = typer.Argument(..., metavar="OUT", help="The folder to create or replace."),
    model: str = typer.Argument(
        "stories", metavar="[MODEL]", help="A model: a folder, a GGUF file, or the name of a pulled model."
    ),
    text: list[str] = typer.Option(
        None, metavar="TEXT", help="A text offered on the page (may be repeated). [default: six examples]"
    ),
    head: list[str] = typer.Option(
        None,
        metavar="BLOCK.HEAD",
        help="Publish only this head, such as 3.5 (may be repeated), if the model is too large. [default: all]",
    ),
    labs: bool = typer.Option(
        True, help="Run all labs and show their results; those that train take several minutes."
    ),
    device: str = DEVICE,
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Publish a page that needs no installation.

    Writes a folder of static files that any web host can serve.

    \b
    For example:
      clearhead publish site
      clearhead publish site runs/my --text "The king was old." --text "The queen was old."
    """
    from clearhead.export.published_folder import publish as write
    from clearhead.export.site import check_folder
    from clearhead.language_model import load
    from clearhead.page.assets import has_bundles

    if not has_bundles():
        raise UserError(
            "the page was not built with this installation: run `pip install .` with npm available"
        )
    check_folder(folder)
    heads = [_parse_head(each) for each in head] if head else None
    opened = load(model, device)
    if labs:
        err.print("running the labs takes several minutes; --no-labs leaves them out")
    written = write(opened, folder, text or None, heads, labs, err.print)
    size = sum(path.stat().st_size for path in written)
    if json:
        print_json({"path": str(folder), "files": [path.name for path in written], "bytes": size})
    else:
        out.print(f"{folder}: {len(written)} files, {size / 1e6:.1f} MB; any web host can serve them")
        out.print(
            f"to view it locally: python -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(folder))}"
        )


def _parse_head(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    if found is None:
        raise UserError(f"--head {text}: expected a block and a head, such as 3.5")
    return int(found[1]), int(found[2])
