"""`clearhead explore`: the page that shows how a sentence passes through a model, in a browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from pathlib import Path

import typer

from clearhead.cli import serve
from clearhead.cli.completion import complete_models
from clearhead.cli.console import err
from clearhead.cli.options import DEVICE
from clearhead.errors import UserError


def explore(
    models: list[str] = typer.Argument(
        None,
        metavar="MODEL",
        help="Folders, GGUF files, or names; the page can open other models, and pull more. [default: the newest "
        "of your own models, or else the built-in model, stories]",
        autocompletion=complete_models,
    ),
    no_browser: bool = typer.Option(
        False, "--no-browser", help="Print the address without opening a browser."
    ),
    port: int = typer.Option(0, min=0, max=65535, help="Port to listen on; 0 picks a free one."),
    token: str | None = typer.Option(
        None,
        envvar="CLEARHEAD_TOKEN",
        show_envvar=True,
        help="Access token: with the same port and token, open pages keep working after a "
        "restart. [default: a new one]",
    ),
    device: str = DEVICE,
) -> None:
    """See every step of a model in the browser. Press Ctrl-C to stop.

    \b
    For example:
      clearhead explore
      clearhead explore runs/my smollm2
      clearhead explore runs/my --no-browser --port 8001
    """
    from clearhead.formats.places import all_places
    from clearhead.page.assets import has_site

    if not has_site():
        raise UserError(
            "the page was not built with this installation: run `pip install .` with npm available"
        )
    _check_kinds(models or [])
    shown = not no_browser and can_open()
    serve.run(
        models or _newest(),
        "127.0.0.1",
        port,
        device,
        token=token,
        show=open_browser if shown else lambda _: None,
        places=all_places(),
        only_first=not models,
    )


def can_open() -> bool:
    """Whether there is a graphical browser, or one that the user chose."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        return False  # webbrowser would otherwise start one in the terminal
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_browser(address: str) -> None:
    """Open the browser in a thread: a browser that runs in the foreground would block the server."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _check_kinds(models: list[str]) -> None:
    """Raise an error if the page can show none of the models."""
    from clearhead.formats.listing import describe
    from clearhead.formats.opening import find_model

    kinds = []
    for model in models:
        try:
            kinds.append(describe(find_model(model)).config.kind)
        except UserError:
            return  # loading it reports the error
    if kinds and "transformer" not in kinds:
        if kinds[0] == "ngram":
            instead = f"to generate text with it: clearhead generate {models[0]}"
        else:
            instead = f"to see its states: clearhead inspect {models[0]} TEXT"
        raise UserError(f"{models[0]} is of kind {kinds[0]}, but the page shows only transformers; {instead}")


def _newest() -> list[Path]:
    """The models that the page can show: your own, newest first, then the built-in and the pulled ones."""
    from clearhead.formats.listing import list_models
    from clearhead.formats.places import all_places, usual_places

    listed = list_models(all_places(), err.print)
    found = [each for each in listed if each.config.kind == "transformer"]
    if all(each.origin == "built-in" for each in found):
        where = " or ".join(map(str, usual_places()))
        err.print(f"no models in {where}: showing the built-in one; to train your own, run clearhead demo")
    found.sort(key=lambda each: each.made, reverse=True)
    # A pulled model is large and slow to load: it opens first only if it is named.
    ranks = {"built-in": 1, "pulled": 2}
    return [each.path for each in sorted(found, key=lambda each: ranks.get(each.origin, 0))]
