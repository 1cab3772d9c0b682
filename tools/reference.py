"""The docs' reference: every command from its --help, every public name from its docstring.

Usage: python -m tools.reference docs/reference. `make docs` does it before it builds the site.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

import clearhead
from clearhead.cli.app import app

WIDTH = 100  # characters of a line of help
# What the public functions give, or take settings of.
GIVEN = (
    ("clearhead.inspect.trace", "Trace"),
    ("clearhead.inspect.views", "HeadView"),
    ("clearhead.inspect.state_trace", "StateTrace"),
    ("clearhead.inspect.lens", "Lens"),
    ("clearhead.inspect.attribution", "Attribution"),
    ("clearhead.inspect.attribution", "Why"),
    ("clearhead.inspect.comparison", "Comparison"),
    ("clearhead.labs.heads", "HeadScores"),
    ("clearhead.labs.probe", "Probe"),
    ("clearhead.labs.lab", "Result"),
    ("clearhead.generate.writing", "Generated"),
    ("clearhead.generate.engine", "Engine"),
    ("clearhead.training.evaluation", "Evaluation"),
    ("clearhead.runs.request", "Request"),
    ("clearhead.picture", "Figure"),
)


def commands() -> str:
    """A page of all commands."""
    lines = [
        "# Commands",
        "",
        "What each command says of itself with `--help`. Progress goes to standard error, what was asked for "
        "to standard output; the exit code is 0, 2 for a mistake of yours (in one line), 1 for one of ours.",
        "",
    ]
    for name, text in _helps(typer.main.get_command(app), "clearhead", None):
        lines += [f"## {name}", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = type(command).context_class(command, info_name=name.split()[-1], parent=parent)
    context.max_content_width = context.terminal_width = WIDTH
    yield name, command.get_help(context)
    for each, below in getattr(command, "commands", {}).items():
        yield from _helps(below, f"{name} {each}", context)


def names() -> str:
    """A page of all public names, and of what they give."""
    lines = [
        "# Python",
        "",
        "`import clearhead as ch`: these names are there, and nothing is imported before it is asked for.",
        "",
    ]
    for name in clearhead.__all__:
        lines += _describe(f"ch.{name}", getattr(clearhead, name))
    lines += ["## What they give", "", "Not made by hand, and so without a public name.", ""]
    for module, name in GIVEN:
        lines += _describe(name, getattr(import_module(module), name), "###")
    return "\n".join(lines)


def _describe(name: str, thing: Any, level: str = "##") -> list[str]:
    lines = [f"{level} {name}", ""]
    shown = thing.__name__ if level == "###" else name
    if isinstance(thing, type):
        if issubclass(thing, Exception):
            return [*lines, *_document(thing)]
        lines += ["```text", f"{shown}{_signature(thing)}", "```", "", *_document(thing)]
        for method, function in _methods(thing):
            lines += [f"{level}# {thing.__name__}.{method}", ""]
            if not isinstance(function, property):
                lines += ["```text", f"{method}{_signature(function)}", "```", ""]
            lines += _document(function)
        return lines
    return [*lines, "```text", f"{shown}{_signature(thing)}", "```", "", *_document(thing)]


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Its own, and those of our classes that it is made of; what has nothing to say is left out."""
    fields = {each.name for each in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("clearhead."):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in found.items():
        function = getattr(value, "__func__", value)
        asked = isinstance(function, property) or inspect.isfunction(function)
        if asked and name not in fields and function.__doc__:
            yield name, function


def _signature(thing: Any) -> str:
    """As it stands in the source; where it is long, a parameter a line."""
    signature = inspect.signature(thing)
    given, named = [], False
    for name, each in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not named:
            given.append("*")
        named = named or each.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        given.append(_parameter(each))
    gives = signature.return_annotation
    end = "" if isinstance(thing, type) or gives is signature.empty else f" -> {_kind(gives)}"
    line = f"({', '.join(given)}){end}"
    if len(line) < WIDTH - 20:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in given) + f"){end}"


def _parameter(each: inspect.Parameter) -> str:
    stars = {each.VAR_POSITIONAL.name: "*", each.VAR_KEYWORD.name: "**"}.get(each.kind.name, "")
    kind = "" if each.annotation is each.empty else f": {_kind(each.annotation)}"
    default = "" if each.default is each.empty else f" = {_default(each.default)}"
    return f"{stars}{each.name}{kind}{default}"


def _kind(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    shown = repr(value)
    return "…" if "<" in shown or "object at" in shown else shown


def _document(thing: Any) -> list[str]:
    text = inspect.getdoc(thing) or ""
    return [text.replace("<", "&lt;"), ""] if text else []


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "commands.md").write_text(commands(), encoding="utf-8")
    (out / "python.md").write_text(names(), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    main(parser.parse_args().out)
