"""Errors caused by the user's input."""

import difflib
from collections.abc import Iterable

LONGEST = 1000  # characters; a message can quote a hostile file


class UserError(ValueError):
    """Input that cannot be used. One line: the input, what was expected, and what to do.

    Errors that users of the page can cause carry a code and the values in the message, from which the page
    composes the message in other languages.
    """

    def __init__(self, message: str, code: str | None = None, **values: str | int) -> None:
        super().__init__(_one_line(message))
        self.code, self.values = code, values


class OwnError(UserError):
    """An error that only this process of a group knows about and must therefore report."""


def guess(name: str, known: Iterable[str]) -> str:
    """The end of a message that suggests the closest known name; empty if none is close."""
    close = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _one_line(message: str) -> str:
    """Escape line breaks and terminal control characters, and cut the middle out of a long message."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - 201]}…{message[-200:]}"
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
