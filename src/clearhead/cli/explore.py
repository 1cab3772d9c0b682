"""`clearhead explore`: the page on which a sentence goes through a model, in a browser."""

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
        metavar="[MODEL…]",
        help="Folders, GGUF files, or pulled names. [default: the newest in runs/ and at home]; the page "
        "opens all others there, too, and pulls more.",
        autocompletion=complete_models,
    ),
    no_browser: bool = typer.Option(False, "--no-browser", help="Print the address, and open nothing."),
    port: int = typer.Option(0, min=0, max=65535, help="0 takes one that is free."),
    token: str | None = typer.Option(
        None,
        envvar="CLEARHEAD_TOKEN",
        show_envvar=True,
        help="What lets a browser in: with the same port and token, pages that were open go on after a "
        "restart. [default: a new one]",
    ),
    device: str = DEVICE,
) -> None:
    """See every step of a model in the browser. Ctrl-C ends it.

    \b
    For example:
      clearhead explore
      clearhead explore runs/my smollm2
      clearhead explore runs/my --no-browser --port 8001
    """
    from clearhead.formats.places import usual_places
    from clearhead.page.assets import has_site

    if not has_site():
        raise UserError("the page was not built when this was installed; `pip install .` builds it, with npm")
    _check_kinds(models or [])
    shown = not no_browser and can_open()
    serve.run(
        models or _newest(),
        "127.0.0.1",
        port,
        device,
        token=token,
        show=_open if shown else lambda _: None,
        places=usual_places(),
        only_first=not models,
    )


def can_open() -> bool:
    """Whether there is a browser with a window, or one that the user chose."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        return False  # what webbrowser finds then takes the terminal
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _open(address: str) -> None:
    """Beside the server, which a browser that stays in front would keep waiting."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _check_kinds(models: list[str]) -> None:
    """Refuse to open the page where it could show none of them."""
    from clearhead.formats.listing import describe
    from clearhead.formats.opening import find_model

    kinds = []
    for model in models:
        try:
            kinds.append(describe(find_model(model)).config.kind)
        except UserError:
            return  # whoever loads it says what is wrong
    if kinds and "transformer" not in kinds:
        if kinds[0] == "ngram":
            instead = f"what it would write is shown by: clearhead generate {models[0]}"
        else:
            instead = f"its states are shown by: clearhead inspect {models[0]} TEXT"
        raise UserError(f"{models[0]} is of kind {kinds[0]}, and the page shows transformers; {instead}")


def _newest() -> list[Path]:
    """The models that the page can show, those made last first."""
    from clearhead.formats.listing import list_models
    from clearhead.formats.places import usual_places

    listed = list_models(usual_places(), err.print)
    found = [each for each in listed if each.config.kind == "transformer"]
    if not found:
        where = " or ".join(map(str, usual_places()))
        err.print(f"no models in {where}: pull one on the page, or make one: clearhead demo")
    return [each.path for each in sorted(found, key=lambda each: each.made, reverse=True)]
