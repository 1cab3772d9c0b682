"""`clearhead publish`: the explorer as a folder that any web host can serve."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.options import DEVICE
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

DEMO = Path("runs/demo")


def publish(
    folder: Path = typer.Argument(..., metavar="OUT", help="The folder to create or replace."),
    texts: list[str] = typer.Argument(
        None, metavar="TEXT", help="Texts offered on the page. [default: six examples]"
    ),
    model: str = typer.Option(
        None,
        metavar="MODEL",
        help="A model: a folder, a GGUF file, or the name of a pulled model. [default: runs/demo, which is "
        "trained for a minute if it does not exist]",
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
      clearhead publish site "The king was old." "The queen was old." --model runs/my
    """
    from clearhead.export.published_folder import check_folder
    from clearhead.export.published_folder import publish as write
    from clearhead.page.assets import has_bundles

    if not has_bundles():
        raise UserError(
            "the page was not built with this installation: run `pip install .` with npm available"
        )
    check_folder(folder)
    heads = [_parse_head(each) for each in head] if head else None
    opened = _open(model, device)
    if labs:
        err.print("running the labs takes several minutes; --no-labs leaves them out")
    written = write(opened, folder, texts or None, heads, labs, err.print)
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


def _open(model: str | None, device: str) -> LanguageModel:
    from clearhead.language_model import load

    if model is not None:
        return load(model, device)
    if not (DEMO / "config.json").is_file():
        _train(device)
    return load(DEMO, device)


def _train(device: str) -> None:
    """Train the demo's model."""
    from clearhead.cli.progress import TerminalObserver
    from clearhead.cli.train import show_outcome
    from clearhead.formats.folder import check_free
    from clearhead.runs.demo import demo_request, demo_texts
    from clearhead.runs.training import train_network

    check_free(DEMO)
    err.print(f"No model was named: training one on the built-in stories for a minute, in {DEMO}.\n")
    request = demo_request(device=device)
    outcome = train_network(DEMO, demo_texts, request, TerminalObserver(), command=sys.argv)
    assert outcome is not None
    show_outcome(outcome)
