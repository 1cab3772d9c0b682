"""The corpus: documents, read in pieces that can be tokenized separately."""

import codecs
import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from clearhead.errors import UserError
from clearhead.text.converters import converter_of
from clearhead.text.sources import Source, UnreadableFileError, encoding_of, find, show

# Our tokenizers never join a character to the whitespace after it, and look no further ahead than the end of that
# whitespace. So the text can be split where whitespace begins. (\S is stricter than the
# tokenizers' own class; the four characters after it are whitespace in both.)
_CUT = re.compile(r"\S(?=[ \t\r\n])")
_SPACES = " \t\r\n"
_CUT_FROM_BEHIND = re.compile(r"[ \t\r\n](?=\S)")  # in a reversed text

PIECE = 2**20  # characters; without whitespace for this long, the text is split anywhere

# A share of a text is taken in chunks of this many characters.
STRETCH = 2**16

MOST_NAMED = 3  # skipped files in messages
_GOLDEN = (5**0.5 - 1) / 2  # the fractional parts of its multiples are evenly spread, however many are taken


@dataclass(frozen=True)
class Document:
    """A named text; each call to `read` starts from the beginning and yields strings of any length."""

    name: str
    read: Callable[[], Iterable[str]]

    @classmethod
    def of(cls, name: str, text: str) -> "Document":
        """A text in memory as a document."""
        return cls(name, lambda: [text])

    def pieces(self) -> Iterator[str]:
        """The text in pieces, split so that their ids, concatenated, are the ids of the whole."""
        held, empty = "", True
        for text in self.read():
            held += text
            if len(held) < PIECE:
                continue
            end = _last_cut(held) or len(held)
            yield held[:end]
            held, empty = held[end:], False
        if held:
            yield held
        elif empty:
            raise UserError(f"{show(self.name)} is empty: remove it, or give another")


def documents(sources: Sequence[str | Path], stdin: BinaryIO | None = None) -> Iterator[Document]:
    """One document per file, given by file name, folder, glob pattern, or "-" for `stdin`."""
    for source in find(sources, stdin):
        yield Document(source.name, partial(_read, source))


def readable(documents: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """The documents that contain text, and messages for the user about the others.

    A single document is not checked here: reading it raises the error.
    """
    if len(documents) < 2:
        return list(documents), []
    kept: list[Document] = []
    empty: list[str] = []
    unreadable: list[UnreadableFileError] = []
    for document in documents:
        try:
            if sum(map(len, document.read())):
                kept.append(document)
            else:
                empty.append(document.name)
        except UnreadableFileError as error:
            unreadable.append(error)
    if not kept and unreadable:
        raise UserError(f"none of the {len(documents):,} files contains readable text: {unreadable[0]}")
    if not kept:
        raise UserError(f"all {len(documents):,} files are empty: give others")
    messages = [f"skipped {show(each.name)}, which {each.reason}" for each in unreadable[:MOST_NAMED]]
    if (more := len(unreadable) - MOST_NAMED) > 0:
        messages.append(f"skipped {more:,} more {'file' if more == 1 else 'files'} that cannot be read")
    if empty:
        others = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        messages.append(f"skipped {show(empty[0])}{others}: empty")
    return kept, messages


def readable_documents(sources: Sequence[str | Path]) -> list[Document]:
    """The documents that contain text; the caller's caller is warned about skipped files."""
    kept, messages = readable(list(documents(sources)))
    for message in messages:
        warnings.warn(message, stacklevel=3)
    return kept


def measure(documents: Iterable[Document]) -> tuple[str, int]:
    """The sha256 of the documents' contents and boundaries, and their length in bytes of UTF-8.

    File names and compression do not matter.
    """
    count = Count()
    for document in documents:
        for _ in count.over(document).pieces():
            pass
    return count.sha256, count.n_bytes


class Count:
    """Hashes and counts documents while they are read, one after the other."""

    def __init__(self) -> None:
        self._total, self.n_bytes = hashlib.sha256(), 0

    @property
    def sha256(self) -> str:
        return self._total.hexdigest()

    def over(self, document: Document) -> Document:
        """The same document, hashed and counted while it is read to its end."""
        return Document(document.name, lambda: self._read(document))

    def _read(self, document: Document) -> Iterator[str]:
        inner = hashlib.sha256()
        for text in document.read():
            encoded = text.encode(errors="surrogatepass")  # the tokenizer reports the error
            inner.update(encoded)
            self.n_bytes += len(encoded)
            yield text
        self._total.update(inner.digest())


def thin(pieces: Iterable[str], number: int, share: float) -> Iterator[tuple[int, str]]:
    """The parts of a document that belong to a share of the text: (start, text) pairs.

    A long document contributes every n-th chunk; of many short documents, every n-th is taken.
    """
    start, phase = 0, number * _GOLDEN
    for piece in pieces:
        for stretch in [piece] if share >= 1 else cut(piece, STRETCH):
            if phase % 1 < share:
                yield start, stretch
            start += len(stretch)
            phase += share


def cut(text: str, length: int) -> Iterator[str]:
    """The text in parts of at least `length` characters, split like `pieces`."""
    start = 0
    while found := _CUT.search(text, start + length):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def _last_cut(text: str) -> int:
    """The last place where the text can be split, or 0. Searches the reversed text, because the end is usually near."""
    stripped = text.rstrip(_SPACES)
    if not stripped[-1:].isspace() and len(stripped) < len(text):
        return len(stripped)
    found = _CUT_FROM_BEHIND.search(stripped[::-1])
    return len(stripped) - found.start() - 1 if found else 0


def _read(source: Source) -> Iterable[str]:
    convert = converter_of(source)
    return _decode(source) if convert is None else [convert(source)]


def _decode(source: Source) -> Iterator[str]:
    name, encoding = source.name, "utf-8"
    decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder(encoding)()
    start, first = 0, True
    for block in chain(source.blocks(), [b""]):
        if start == 0 and (encoding := encoding_of(block)) != "utf-8":
            decoder = codecs.getincrementaldecoder(encoding)()
        if encoding == "utf-8" and (at := block.find(b"\0")) >= 0:
            raise UnreadableFileError(
                name, f"is not text: its byte {start + at} is NUL; give plain text in UTF-8"
            )
        unfinished, _ = decoder.getstate()
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            if not block:
                lost = len(error.object)
                last = "its last byte" if lost == 1 else f"its last {lost} bytes"
                reason = (
                    f"ends in the middle of a character, so it is truncated: copy it again, or remove {last}"
                )
            elif encoding == "utf-8":
                at = start - len(unfinished) + error.start
                convert = f"convert it, for example with {_iconv('LATIN1', show(name))}"
                reason = f"is not UTF-8: byte {at} is 0x{error.object[error.start]:02x}; {convert}"
            else:
                reason = f"is damaged {encoding.upper()}: copy it again from its source, or save it as UTF-8"
            raise UnreadableFileError(name, reason) from None
        if encoding != "utf-8" and "\0" in text:
            raise UnreadableFileError(name, "is not text: it contains NUL; give plain text in UTF-8")
        start += len(block)
        if text and first:
            text, first = text.removeprefix("\ufeff"), False
        yield text


def _iconv(encoding: str, name: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 {name} > utf8.txt"
