"""`clearhead publish`: the explorer as a folder that any web host can serve."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.options import DEVICE
from clearhead.errors import UserError

BUILT_IN = "stories"


def publish(
    target: Path = typer.Argument(
        ..., metavar="OUT", help="The folder, or with --one-file the HTML file, to write."
    ),
    models: list[str] = typer.Argument(
        None,
        metavar="MODEL",
        help="A model: a folder, a GGUF file, or the name of a pulled or built-in model. [default: stories]",
    ),
    live: bool = typer.Option(
        False,
        "--live",
        help="Publish one or more models themselves, which each visitor's browser runs on any text.",
    ),
    one_file: bool = typer.Option(
        False, "--one-file", help="Write OUT as one HTML file in which the model is live."
    ),
    numbers: str = typer.Option(
        "float32", metavar="TYPE", help="How a live page stores the weights: float32, float16 or int8."
    ),
    text: list[str] = typer.Option(
        None,
        metavar="TEXT",
        help="A text that visitors can choose (may be repeated). [default: some examples]",
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

    Writes a folder of static files that any web host can serve. Visitors choose among texts that were run
    beforehand, or, with --live, enter any text, and their browsers compute every number.

    \b
    For example:
      clearhead publish site runs/my --text "The king was old." --text "The queen was old."
      clearhead publish site --live runs/my smollm2 --numbers float16
      clearhead publish mine.html --one-file runs/my
    """
    from clearhead.export.live_page import check_numbers, publish_live, save_live_html
    from clearhead.export.published_folder import publish as write
    from clearhead.export.site import check_folder
    from clearhead.language_model import load
    from clearhead.page.assets import has_bundles

    if not has_bundles():
        raise UserError(
            "the page was not built with this installation: run `pip install .` with npm available"
        )
    checked = check_numbers(numbers)
    heads = [_parse_head(each) for each in head] if head else None
    names = models or [BUILT_IN]
    _check_options(len(names), live or one_file, one_file, numbers, head)
    if one_file:
        save_live_html(load(names[0], device), target, checked, text or None)
        _report_file(target, json)
        return
    check_folder(target)
    opened = [load(name, device) for name in names]
    if labs:
        err.print("running the labs takes several minutes; --no-labs leaves them out")
    if live:
        written = publish_live(opened, target, checked, text or None, labs, err.print)
    else:
        written = write(opened[0], target, text or None, heads, labs, err.print)
    size = sum(path.stat().st_size for path in written)
    if json:
        files = [path.relative_to(target).as_posix() for path in written]
        print_json({"path": str(target), "files": files, "bytes": size})
    else:
        out.print(f"{target}: {len(written)} files, {size / 1e6:.1f} MB; any web host can serve them")
        out.print(
            f"to view it locally: python -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(target))}"
        )


def _report_file(path: Path, as_json: bool) -> None:
    size = path.stat().st_size
    if as_json:
        print_json({"path": str(path), "bytes": size})
    else:
        out.print(f"{path}: {size / 1e6:.1f} MB; opens in any browser")


def _check_options(count: int, live: bool, one_file: bool, numbers: str, head: list[str] | None) -> None:
    """Raise UserError for options that do not go together."""
    if not live and count > 1:
        raise UserError("a page with several models must be live: add --live")
    if not live and numbers != "float32":
        raise UserError(f"--numbers {numbers} applies to live pages: add --live or --one-file")
    if live and head:
        raise UserError("--head applies to recorded texts: a live page has every head")
    if one_file and count > 1:
        raise UserError("--one-file holds one model: publish a folder for several")


def _parse_head(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    if found is None:
        raise UserError(f"--head {text}: expected a block and a head, such as 3.5")
    return int(found[1]), int(found[2])
