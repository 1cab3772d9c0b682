"""`clearhead doctor`: check this machine and the installation."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from clearhead.cli import config
from clearhead.cli.console import out, print_json
from clearhead.errors import UserError
from clearhead.version import __version__

if TYPE_CHECKING:
    from clearhead.doctor import Finding, Health


def doctor(
    context: typer.Context,
    json: bool = typer.Option(False, "--json", help="Print the findings as JSON."),
) -> None:
    """Check this machine and the installation.

    Shows how to fix each problem. Exits with 1 if something required is broken, otherwise with 0; missing
    optional parts do not count.

    \b
    For example:
      clearhead doctor
      clearhead doctor --json
    """
    from clearhead.doctor import Finding, look

    found = [*look(), Finding("places", config.NAME, *_look_at_config(context))]
    broken = [each for each in found if each.state == "broken"]
    if json:
        print_json(
            {"version": __version__, "broken": bool(broken), "findings": [asdict(each) for each in found]}
        )
    else:
        _show(found, broken)
    if broken:
        raise typer.Exit(1)


def _show(found: list[Finding], broken: list[Finding]) -> None:
    out.print(f"clearhead {__version__}")
    width = max(len(each.name) for each in found)
    group = ""
    for each in found:
        if each.group != group:
            group = each.group
            out.print(f"\n{group}", style="bold")
        mark = {"fine": " ", "missing": "-", "broken": "!"}[each.state]
        out.print(f"{mark} {each.name:<{width}}  {each.message}")
        if each.do is not None:
            out.print(f"  {'':<{width}}  to do: {each.do}")
    names = ", ".join(each.name for each in broken)
    said = f"Broken: {names}." if broken else "Everything required is installed."
    missing = [each for each in found if each.state == "missing"]
    if full := [each.name for each in missing if each.group == "places"]:
        said += f" Low on disk space or not writable: {', '.join(full)}."
    if others := [each.name for each in missing if each.group != "places"]:
        said += f" Missing, but optional: {', '.join(others)}."
    out.print(f"\n{said}")


def _look_at_config(context: typer.Context) -> tuple[str, Health, str | None]:
    path = config.find()
    if path is None:
        return "none; options use their built-in defaults", "fine", None
    try:
        tables = config.read(path, context.find_root().command)
    except UserError as error:
        return str(error), "broken", f"fix the file, or disable it: {config.VARIABLE}= clearhead …"
    return f"{path}, with defaults for {', '.join(tables) or 'no commands'}", "fine", None
