"""The one kind of error that is the user's to mend."""

import difflib
from collections.abc import Iterable

LONGEST = 1000  # characters; what a file holds may be quoted, and a file may be hostile


class UserError(ValueError):
    """What was given cannot be used. One line: what was given, what was expected, what to do.

    What visitors of the page can bring about has a code, and the values that the message is made of: with
    them the page says it in other languages.
    """

    def __init__(self, message: str, code: str | None = None, **values: str | int) -> None:
        super().__init__(_one_line(message))
        self.code, self.values = code, values


class OwnError(UserError):
    """Of several processes that work together this one alone knows of it, and so must tell."""


def guess(name: str, known: Iterable[str]) -> str:
    """The known name that may have been meant, as the end of a message; nothing where none is near."""
    close = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _one_line(message: str) -> str:
    """Escape what would break the line or steer a terminal, and cut out the middle of what is too long."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - 201]}…{message[-200:]}"
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
