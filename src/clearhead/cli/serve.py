"""`clearhead serve`: models behind OpenAI's interface and our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from clearhead.cli.completion import complete_models
from clearhead.cli.console import err
from clearhead.cli.options import DEVICE
from clearhead.errors import UserError
from clearhead.generate.sampling import MAX_QUEUE, MAX_SLOTS, QUEUE


def serve(
    models: list[str] = typer.Argument(
        ...,
        metavar="MODEL…",
        help="Folders, GGUF files, or pulled names.",
        autocompletion=complete_models,
    ),
    host: str = typer.Option(
        "127.0.0.1", help="Where to listen. Other machines reach only what is not loopback."
    ),
    port: int = typer.Option(8000, min=0, max=65535, help="0 takes one that is free."),
    token: str = typer.Option(
        None, envvar="CLEARHEAD_TOKEN", show_envvar=True, help="What lets a client in. [default: a new one]"
    ),
    no_token: bool = typer.Option(False, "--no-token", help="Let in whoever is on this machine."),
    allow_host: list[str] = typer.Option(
        None, help="A name that this server goes by, such as behind a proxy (may be repeated)."
    ),
    slots: int = typer.Option(16, min=1, max=MAX_SLOTS, help="Texts of a model that are written at once."),
    queue: int = typer.Option(
        QUEUE, min=1, max=MAX_QUEUE, help="Requests that may wait; more are told to come back."
    ),
    grace: float = typer.Option(
        30.0, min=0, max=3600, help="Seconds that what is being written at the end may still take."
    ),
    device: str = DEVICE,
) -> None:
    """Serve models to the OpenAI client, and to the page.

    On this machine alone unless told otherwise, and only to who has the token.

    \b
    For example:
      clearhead serve runs/my
      clearhead serve runs/my smollm2 --port 9000
    """
    if no_token and token is not None:
        raise UserError("both --token and --no-token were given; give one of them")
    run(
        models,
        host,
        port,
        device,
        token=token,
        no_token=no_token,
        allowed=allow_host or (),
        slots=slots,
        queue=queue,
        grace=grace,
    )


def run(
    models: Sequence[str | Path],
    host: str,
    port: int,
    device: str | None,
    *,
    token: str | None = None,
    no_token: bool = False,
    allowed: Sequence[str] = (),
    slots: int = 16,
    queue: int = QUEUE,
    grace: float = 30.0,
    show: Callable[[str], object] = lambda _: None,
    places: Sequence[Path] | None = None,
    only_first: bool = False,
) -> None:
    """Load and serve until a signal comes. `show` is given the address; who comes early waits.

    Where there are places, the models there can be opened too while it runs, and others pulled: at the start
    the first that can be loaded may do.
    """
    from clearhead.files import home
    from clearhead.server.model_loader import ModelLibrary
    from clearhead.server.model_registry import LoadOptions, load_models
    from clearhead.server.process import address, make_credentials, make_token, open_socket
    from clearhead.server.process import serve as run_server

    if token is not None and (
        len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise UserError("the token is too easy: expected at least 16 letters and digits without spaces")
    token = None if no_token else token or make_token()
    opened = open_socket(host, port, token)
    with opened:
        loader = LoadOptions(device, slots, queue)
        library = None if places is None else ModelLibrary(places, home(), loader)
        registry = load_models(models, loader, err.print, only_first)
        credentials = make_credentials(host, opened, token, allowed)
        err.print(f"open {address(host, credentials)}")
        show(address(host, credentials))
        run_server(registry, opened, credentials, log=err.print, library=library, grace=grace)
    err.print("ended")
