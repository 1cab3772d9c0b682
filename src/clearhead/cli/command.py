"""A command that takes defaults from `clearhead.toml`, and whose errors name options as they are typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from clearhead.cli import config
from clearhead.cli.console import err
from clearhead.errors import UserError

# The name of an option's value in the help.
METAVARS = {int: "N", float: "N", Path: "PATH", str: "TEXT"}


class Command(TyperCommand):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for option in config.options(self):
            if option.metavar is None and not option.is_flag:
                option.metavar = METAVARS[config.kind_of(option)]
        for argument in self._arguments():
            argument.display_type_rich = lambda **_: None  # its name is enough: MODEL, not MODEL <path>

    def collect_usage_pieces(self, _: Any) -> list[str]:
        """MODEL for a required argument, [MODEL] for an optional one, followed by ... if it may be repeated."""
        pieces = []
        for each in self._arguments():
            name = each.metavar if each.required else f"[{each.metavar}]"
            pieces.append(name if each.nargs == 1 else f"{name}...")
        return ["[OPTIONS]", *pieces]

    def _arguments(self) -> list[Any]:
        return [each for each in self.params if each.param_type_name == "argument"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if (
                getattr(error, "ctx", ctx) is None
            ):  # the parser does not say which command's option lacks a value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        config.give_way(ctx)
        for line in config.list_taken(ctx):
            err.print(line)
        try:
            return super().invoke(ctx)
        except UserError as error:
            error.args = (_name_options(str(error), ctx),)
            raise


def _name_options(message: str, context: Any) -> str:
    """The message with options as they are typed.

    That is --top-p 2 for `top_p = 2` at the start, --from for `start` in backticks, and --discard-teachers for
    `keep_teachers=False`.
    """
    flags = {option.name: config.flag(option) for option in config.options(context.command)}
    given = re.match(r"(\w+) = (?:'([^\s']+)'(?=: ))?", message)
    if given and given[1] in flags:
        shown = config.show_key(given[1], context) or flags[given[1]]
        message = f"{shown} {given[2] or ''}{message[given.end() :]}"
    switches = {f"{name}=True": shown for name, shown in flags.items()}
    for option in config.options(context.command):
        switches[f"{option.name}=False"] = (option.secondary_opts or [f"no {flags[option.name]}"])[0]
    return re.sub(r"`([\w=]+)`", lambda name: (flags | switches).get(name[1], name[0]), message)
