"""Output streams: text to stdout, progress to stderr, color only on a terminal.

Also reads text arguments that may come from stdin.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from clearhead.finite import finite
from clearhead.runs.progress_line import clock as clock
from clearhead.summary_table import plural as plural

if TYPE_CHECKING:
    from clearhead.text.corpus import Document

# Characters that a terminal obeys instead of showing, that reverse the text after them, or that cannot be encoded.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class EscapingConsole(Console):
    """A console that escapes control characters in texts; only the console's own styles and cursor moves reach the
    terminal.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


out = EscapingConsole(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = EscapingConsole(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def read_argument(text: str) -> str:
    """The text itself, or all of stdin for -."""
    if text != "-":
        return text
    from clearhead.text.corpus import documents

    (document,) = documents(["-"], sys.stdin.buffer)
    return "".join(document.pieces())


def read_texts(names: Sequence[str]) -> list[Document]:
    """The documents with these names; reports files that are skipped."""
    from clearhead.text.corpus import documents, readable

    texts, messages = readable(list(documents(names, sys.stdin.buffer)))
    for message in messages:
        err.print(f"clearhead: {message}")
    return texts


def print_text(text: str) -> None:
    """Print text unbuffered, and without rich, which would replace tabs. Escape control characters on a terminal."""
    print(printable(text) if sys.stdout.isatty() else text, end="", flush=True)


def printable(text: str) -> str:
    """The text with control characters, which a terminal would obey, escaped; newlines and tabs are kept."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def in_one_line(text: str) -> str:
    """The text with control characters, newlines and tabs escaped, as in a table."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def print_json(document: Any) -> None:
    """Print one JSON document; non-finite numbers become null."""
    text = json.dumps(finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    # JSON itself escapes only the first 32 control characters.
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
