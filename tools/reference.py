"""Generate the docs' reference pages from `--help` texts and docstrings.

Usage: python -m tools.reference docs/reference. `make docs` runs this before building the site.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import clearhead
from clearhead.cli.app import app

WIDTH = 100  # characters per line of help
# Classes that the public functions return or accept.
RETURNED_CLASSES = (
    ("clearhead.inspect.trace", "Trace"),
    ("clearhead.inspect.block_views", "HeadView"),
    ("clearhead.inspect.state_trace", "StateTrace"),
    ("clearhead.inspect.lens", "Lens"),
    ("clearhead.inspect.attribution", "Attribution"),
    ("clearhead.inspect.attribution", "ScoreAttribution"),
    ("clearhead.inspect.comparison", "Comparison"),
    ("clearhead.labs.heads", "HeadScores"),
    ("clearhead.labs.probe", "Probe"),
    ("clearhead.labs.lab", "Result"),
    ("clearhead.generate.detokenizer", "Generated"),
    ("clearhead.generate.engine", "Engine"),
    ("clearhead.training.evaluation", "Evaluation"),
    ("clearhead.runs.request", "TrainingRequest"),
    ("clearhead.runs.listing", "ListedRuns"),
    ("clearhead.runs.listing", "ListedRun"),
    ("clearhead.picture", "Figure"),
)


def commands() -> str:
    """Return the reference page of all commands."""
    lines = [
        "# Commands",
        "",
        "The `--help` text of each command. Results go to stdout and progress to stderr. The exit code is 0 on "
        "success, 2 for a user error (with a one-line message), and 1 for an internal error.",
        "",
    ]
    for name, text in _helps(typer.main.get_command(app), "clearhead", None):
        lines += [f"## {name}", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = type(command).context_class(command, info_name=name.split()[-1], parent=parent)
    context.max_content_width = context.terminal_width = WIDTH
    yield name, command.get_help(context)
    for subname, subcommand in getattr(command, "commands", {}).items():
        yield from _helps(subcommand, f"{name} {subname}", context)


def names() -> str:
    """Return the reference page of all public names and the classes they return."""
    lines = [
        "# Python API",
        "",
        "The public names of the package `clearhead`, here imported as `ch`. Each is loaded on first use.",
        "",
    ]
    for name in clearhead.__all__:
        lines += _describe(f"ch.{name}", getattr(clearhead, name))
    lines += [
        "## Returned objects",
        "",
        "The functions above return or use these; you do not create them yourself.",
        "",
    ]
    for module, name in RETURNED_CLASSES:
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
            if not isinstance(function, property | cached_property):
                lines += ["```text", f"{method}{_signature(function)}", "```", ""]
            lines += _document(function)
        return lines
    return [*lines, "```text", f"{shown}{_signature(thing)}", "```", "", *_document(thing)]


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the documented methods and properties of a class, including inherited ones."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("clearhead."):
            members |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in members.items():
        function = getattr(value, "__func__", value)
        is_property = isinstance(function, property | cached_property)
        callable_or_property = is_property or inspect.isfunction(function)
        if callable_or_property and name not in fields and function.__doc__:
            yield name, function


def _signature(thing: Any) -> str:
    """Format a signature as in the source; a long one gets one parameter per line."""
    signature = inspect.signature(thing)
    parameters, keyword_only = [], False
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            parameters.append("*")
        keyword_only |= parameter.kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        )
        parameters.append(_parameter(parameter))
    returns = signature.return_annotation
    end = "" if isinstance(thing, type) or returns is signature.empty else f" -> {_kind(returns)}"
    line = f"({', '.join(parameters)}){end}"
    if len(line) < WIDTH - 20:
        return line
    return "(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    kind = "" if parameter.annotation is parameter.empty else f": {_kind(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}{kind}{default}"


def _kind(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    shown = repr(value)
    return "…" if "<" in shown or "object at" in shown else shown


def _document(thing: Any) -> list[str]:
    text = inspect.getdoc(thing.__call__ if isinstance(thing, ModuleType) else thing) or ""
    return [text.replace("<", "&lt;"), ""] if text else []


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "commands.md").write_text(commands(), encoding="utf-8")
    (out / "python.md").write_text(names(), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    main(parser.parse_args().out)
