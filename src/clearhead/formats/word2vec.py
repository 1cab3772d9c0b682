"""Word vectors in word2vec's two formats, which gensim and many other programs read.

Both start with a line of two numbers: the number of words and the number of features per vector. After that,
each word is followed by a space and its vector: in text files (`.txt`, `.vec`) numbers and a line break, in
binary files (`.bin`) little-endian float32, optionally followed by a line break.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.files import disk_errors, make_folder, open_regular, write_whole

BINARY, TEXT = (".bin",), (".txt", ".vec")
MOST_WIDTH = 10_000  # features per vector
LONGEST_WORD = 1000  # bytes

_EXPECTED = "word vectors in word2vec's format"
_HEADER = re.compile(rb"(\d{1,12}) (\d{1,6})[ \r]*\n")
_NUMBERS = re.compile(rb"[-+.0-9eEinfaINFA]+")
_LONGEST_NUMBER = 50
_BLOCK = 2**20


def save(path: Path, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Write a file atomically; its suffix selects the format."""
    text = check_ending(path)
    for word in words:
        if not word or set(word) & set(" \n\r\t") or len(word.encode()) > LONGEST_WORD:
            raise UserError(f"the word {word[:80]!r} cannot be written: expected one without whitespace")

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(b"%d %d\n" % vectors.shape)
            for word, vector in zip(words, vectors, strict=True):
                row = " ".join(f"{x:.9g}" for x in vector.tolist()).encode() if text else _bytes(vector)
                file.write(word.encode() + b" " + row + b"\n")

    with disk_errors(path.parent, "the word vectors were not saved"):
        make_folder(path.parent)
        write_whole(path, write)


def check_ending(path: Path) -> bool:
    """Whether a file with this name is text. Raises UserError for an unknown suffix."""
    ending = path.suffix.lower()
    if ending not in BINARY + TEXT:
        raise UserError(f"{path}: expected a name that ends in .bin (binary), or .txt or .vec (text)")
    return ending in TEXT


def recognize(path: Path) -> bool:
    """Whether a file contains word vectors rather than text, judging by its name or its beginning."""
    if path.suffix.lower() in (".bin", ".vec") and path.is_file():
        return True
    try:
        with _open(path) as file:
            _Header(path, file)
    except (UserError, OSError, ValueError):
        return False
    return True


def load(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """The words and their vectors, V D. Keeps only the first of duplicate words."""
    try:
        with _open(path) as file:
            header = _Header(path, file)
            words, vectors = _read_text(file, header) if header.text else _read_binary(file, header)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; expected {_EXPECTED}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        word = words[int(finite.argmin())]
        raise UserError(f"{path}: the vector of {word[:80]!r} has numbers that are not finite; copy it again")
    first: dict[str, int] = {}
    for i, word in enumerate(words):
        first.setdefault(word, i)
    return (words, vectors) if len(first) == len(words) else (list(first), vectors[list(first.values())])


class _Header:
    """The number of words and features, and whether the file is text. Checks that its size is plausible."""

    def __init__(self, path: Path, file: io.BufferedReader) -> None:
        self.path, line = path, file.readline(64)
        found = _HEADER.fullmatch(line)
        self.words, self.width = (int(found[1]), int(found[2])) if found else (0, 0)
        if not self.words or not 0 < self.width <= MOST_WIDTH:
            raise UserError(
                f"{path} is not {_EXPECTED}: expected a first line with the number of words and the "
                f"number of features per vector (at most {MOST_WIDTH:,})"
            )
        rest = os.fstat(file.fileno()).st_size - len(line)
        row = file.peek(_longest_row(self.width)).split(b"\n", 1)[0]
        self.text = _is_row(row, self.width)
        least = 1 + 2 * self.width if self.text else 2 + 4 * self.width  # bytes per word
        if rest < self.words * least:
            raise UserError(
                f"{path} is truncated, or is not {_EXPECTED}: its first line declares {self.words:,} words of "
                f"{self.width} numbers, but {rest:,} bytes follow; copy it again from its source"
            )
        if rest > self.words * _longest_row(self.width):
            self.complain("is longer than its first line declares")

    def complain(self, what: str) -> NoReturn:
        raise UserError(f"{self.path} {what}; copy it again from its source")


def _open(path: Path) -> io.BufferedReader:
    return io.BufferedReader(open_regular(path, _EXPECTED), _longest_row(MOST_WIDTH))


def _longest_row(width: int) -> int:
    return LONGEST_WORD + 2 + _LONGEST_NUMBER * width


def _is_row(line: bytes, width: int) -> bool:
    """Whether a line is a word and this many numbers."""
    _, *numbers = line.strip(b" \r").split(b" ")
    return len(numbers) == width and all(map(_NUMBERS.fullmatch, numbers))


def _read_text(file: io.BufferedReader, header: _Header) -> tuple[list[str], NDArray[np.float32]]:
    words, vectors = [], np.empty((header.words, header.width), np.float32)
    longest = _longest_row(header.width)
    for i in range(header.words):
        line = file.readline(longest)
        if not line.endswith(b"\n") and len(line) < longest:  # a truncated number is still a number
            header.complain(f"is truncated: it ends in word {i:,} of {header.words:,}")
        word, *numbers = line.strip(b" \r\n").split(b" ")
        if len(word) > LONGEST_WORD:
            header.complain(f"has a word of over {LONGEST_WORD} bytes")
        try:
            with np.errstate(over="ignore"):  # infinities are reported later
                vectors[i] = numbers
        except (ValueError, OverflowError):
            header.complain(f"does not have {header.width} numbers for word {i:,}")
        words.append(word.decode(errors="replace"))
    if file.read(_BLOCK).strip():
        header.complain(f"continues after its {header.words:,} words")
    return words, vectors


def _read_binary(file: io.BufferedReader, header: _Header) -> tuple[list[str], NDArray[np.float32]]:
    words, vectors = [], np.empty((header.words, header.width), np.float32)
    length, held, at = 4 * header.width, b"", 0
    for i in range(header.words):
        while (end := held.find(b" ", at)) < 0 or len(held) < end + 1 + length:
            block = file.read(_BLOCK)
            if not block:
                header.complain(f"is truncated: it ends in word {i:,} of {header.words:,}")
            held, at = held[at:] + block, 0
            if held.find(b" ", 0, LONGEST_WORD + 2) < 0 and len(held) > LONGEST_WORD + 1:
                header.complain(f"has a word of over {LONGEST_WORD} bytes")
        words.append(held[at:end].lstrip(b"\n").decode(errors="replace"))
        vectors[i] = np.frombuffer(held, "<f4", header.width, end + 1)
        at = end + 1 + length
    if (held[at:] + file.read(_BLOCK)).strip():
        header.complain(f"continues after its {header.words:,} words")
    return words, vectors


def _bytes(vector: NDArray[np.float32]) -> bytes:
    return vector.astype("<f4").tobytes()
