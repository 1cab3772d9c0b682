"""`clearhead serve`: models behind OpenAI's API and our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from clearhead.cli.completion import complete_models
from clearhead.cli.console import err
from clearhead.cli.options import DEVICE, generation_option
from clearhead.errors import UserError
from clearhead.generate.sampling import QUEUE, SLOTS, check_options


def serve(
    models: list[str] = typer.Argument(
        ...,
        metavar="MODEL",
        help="Folders, GGUF files, or names of pulled models.",
        autocompletion=complete_models,
    ),
    host: str = typer.Option(
        "127.0.0.1",
        help="Address to listen on; only non-loopback addresses are reachable from other machines.",
    ),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on; 0 picks a free one."),
    token: str = typer.Option(
        None,
        envvar="CLEARHEAD_TOKEN",
        show_envvar=True,
        help="Access token for clients. [default: a new one]",
    ),
    no_token: bool = typer.Option(
        False, "--no-token", help="Allow access from this machine without a token."
    ),
    allow_host: list[str] = typer.Option(
        None,
        help="A host name by which clients reach this server, such as that of a proxy (may be repeated).",
    ),
    slots: int = generation_option("slots"),
    queue: int = generation_option("queue"),
    grace: float = typer.Option(
        30.0, min=0, max=3600, help="Seconds to let running requests finish after a shutdown signal."
    ),
    plain_chat: bool = typer.Option(
        True, help="Let models without a chat template continue a conversation as plain text."
    ),
    device: str = DEVICE,
) -> None:
    """Serve models to OpenAI clients and the explorer in the browser.

    By default, listens on this machine only and requires a token.

    \b
    For example:
      clearhead serve runs/my
      clearhead serve runs/my smollm2 --port 9000
    """
    check_options(slots=slots, queue=queue)
    if no_token and token is not None:
        raise UserError("--token and --no-token are mutually exclusive: use only one")
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
        plain_chat=plain_chat,
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
    slots: int = SLOTS,
    queue: int = QUEUE,
    grace: float = 30.0,
    plain_chat: bool = True,
    show: Callable[[str], object] = lambda _: None,
    places: Sequence[Path] | None = None,
    only_first: bool = False,
    log: Callable[[str], object] = err.print,
    ended: Callable[[], str] = lambda: "ended",
) -> None:
    """Load the models and serve until a signal arrives. `show` receives the address; early requests wait.

    `ended` returns the line to print at the end.

    With `places`, the models there can be opened later, and others pulled. With `only_first`, only the
    first model that can be loaded is loaded at the start.
    """
    from clearhead.export.page_file import write_page
    from clearhead.files import home
    from clearhead.server.model_loader import ModelLibrary
    from clearhead.server.model_registry import LoadOptions, load_models
    from clearhead.server.process import make_credentials, make_token, make_url, open_socket
    from clearhead.server.process import serve as run_server

    if token is not None and (
        len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise UserError(
            "the token is too weak: expected at least 16 printable ASCII characters without spaces"
        )
    token = None if no_token else token or make_token()
    opened = open_socket(host, port, token)
    with opened:
        options = LoadOptions(device, slots, queue, plain_chat)
        library = None if places is None else ModelLibrary(places, home(), options)
        registry = load_models(models, options, err.print, only_first)
        credentials = make_credentials(host, opened, token, allowed)
        err.print(f"open {make_url(host, credentials)}")
        show(make_url(host, credentials))
        run_server(
            registry, opened, credentials, log=log, library=library, grace=grace, write_page=write_page
        )
    err.print(ended())
