"""SIGINT and SIGTERM, which end a command in the same way."""

from __future__ import annotations

from types import FrameType

RECEIVED: list[int] = []  # signals so far: a library that is being imported may swallow the KeyboardInterrupt


def interrupt(number: int, _: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C: close what is open and remove temporary files."""
    RECEIVED.append(number)
    raise KeyboardInterrupt
