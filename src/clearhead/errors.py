"""Errors caused by the user's input."""

import difflib
from collections.abc import Iterable

LONGEST = 1000  # characters; a message may quote a hostile file


class UserError(ValueError):
    """Input that cannot be used. One line: what was given, what was expected, what to do.

    Errors that visitors of the page can cause carry a code and the values of the message, with which the page
    says it in other languages.
    """

    def __init__(self, message: str, code: str | None = None, **values: str | int) -> None:
        super().__init__(_one_line(message))
        self.code, self.values = code, values


class OwnError(UserError):
    """An error that only this process of a group knows of, so it must report it."""


def guess(name: str, known: Iterable[str]) -> str:
    """A suggestion of the closest known name, as the end of a message; empty if none is close."""
    close = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _one_line(message: str) -> str:
    """Escape line breaks and terminal control characters, and cut the middle out of a long message."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - 201]}…{message[-200:]}"
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
