"""A command that reads `clearhead.toml`, and whose usage errors name it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from clearhead.cli import config
from clearhead.cli.console import err


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if (
                getattr(error, "ctx", ctx) is None
            ):  # the parser does not say which command's option lacks its value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        config.give_way(ctx)
        for line in config.list_taken(ctx):
            err.print(line)
        return super().invoke(ctx)
