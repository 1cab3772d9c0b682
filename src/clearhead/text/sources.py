"""Sources: the files named by the user's arguments, readable repeatedly and decompressed if necessary."""

import codecs
import glob
import gzip
import lzma
import os
import secrets
import stat
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from clearhead.errors import UserError, guess

BLOCK = 2**20  # bytes read at a time
# Texts compress to about a tenth of their size. A file with a beginning that expands by more than this factor, to
# over 32 MB, was made to exhaust memory or time.
MOST_EXPANSION, UNCHECKED = 200, 2**25
MOST_GUESSED = 1000  # names searched for a suggestion

# In a folder, files with these suffixes count as text, as do those with .gz or .xz appended, or with only .gz or .xz.
# A file or pattern given explicitly may have any name.
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown", ".rst"})
CONVERTED_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".epub", ".docx", ".pdf"})
COLUMN_SUFFIXES = frozenset({".csv", ".tsv"})  # files with columns; file.csv:column selects one
PACKED_SUFFIXES = frozenset({".gz", ".xz"})

BYTE_ORDER_MARKS = {  # the longer first: that of UTF-32 starts with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"


class UnreadableFileError(UserError):
    """A file whose content is not text, or cannot be read. Among other files, it is skipped."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{show(name)} {reason}")
        self.name, self.reason = name, reason


@dataclass(frozen=True, eq=False)
class Source:
    """A file that can be read repeatedly."""

    name: str
    path: Path
    column: str | None = None  # of a CSV file

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the file, decompressed if they start like gzip or xz."""
        try:
            size = 0
            with self.path.open("rb") as packed, _unpack(packed) as file:
                while block := file.read(BLOCK):
                    size += len(block)
                    if size > max(UNCHECKED, MOST_EXPANSION * packed.tell()):
                        raise UnreadableFileError(
                            self.name,
                            f"expands to more than {MOST_EXPANSION} times its size: if it is a text, decompress it",
                        )
                    yield block
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
            raise UnreadableFileError(
                self.name, "is a damaged or truncated archive: copy it again from its source"
            ) from None
        except OSError as error:
            raise UnreadableFileError(
                self.name, f"cannot be read: {error.strerror}; check the file and its permissions"
            ) from None


def find(arguments: Sequence[str | Path], stdin: BinaryIO | None = None) -> list[Source]:
    """The files that the arguments name: a file, a folder, a glob pattern such as books/*.txt, or "-" for `stdin`."""
    if not arguments:
        raise UserError("no text was given: name a file, a folder, a pattern such as 'books/*.txt', or -")
    sources = [source for argument in arguments for source in _find(argument, stdin)]
    seen: set[Path] = set()
    for source in sources:
        if (path := source.path.resolve()) in seen:
            raise UserError(f"{show(source.name)} was given twice: give it once")
        seen.add(path)
    return sources


def encoding_of(start: bytes) -> str:
    """The encoding of a text that starts with these bytes: UTF-8, unless a byte order mark says otherwise."""
    marked = (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark))
    return next(marked, "utf-8")


def suffix_of(path: Path) -> str:
    """The suffix in lowercase, ignoring a compression suffix: .csv for a.CSV.gz."""
    if path.suffix.lower() in PACKED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def show(name: str) -> str:
    """A file name, safe to print on one line."""
    return name if name.isprintable() else ascii(name)


def _find(argument: str | Path, stdin: BinaryIO | None) -> Iterable[Source]:
    name = str(argument)
    if name == "-":
        if stdin is None:
            raise UserError("- means standard input, which is not available here: name a file instead")
        return [_spool("standard input", stdin)]
    path = Path(argument)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        file, _, column = name.rpartition(":")
        if suffix_of(Path(file)) in COLUMN_SUFFIXES and os.path.isfile(file):  # noqa: PTH113 (takes any string)
            return [Source(name, Path(file), column)]
        return _match(name)
    except OSError as error:
        raise UserError(
            f"{show(name)} cannot be read: {error.strerror}; name a file, a folder or a pattern"
        ) from None
    if stat.S_ISDIR(mode):
        return _walk(path)
    if stat.S_ISREG(mode):
        return [Source(name, path)]
    if not stat.S_ISFIFO(mode):
        raise UserError(f"{show(name)} is a device or a socket, expected a file, a folder or a pipe")
    # A pipe, such as the shell's <(…), can be read only once.
    with path.open("rb") as pipe:
        return [_spool(name, pipe)]


def _unpack(packed: BinaryIO) -> BinaryIO:
    """A reader of a file's content, decompressed if it starts like gzip or xz."""
    magic = packed.read(len(_XZ))
    packed.seek(0)
    if magic.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=packed, mode="rb"))
    if magic.startswith(_XZ):
        return cast(BinaryIO, lzma.LZMAFile(packed))
    return packed


def _match(pattern: str) -> list[Source]:
    if not glob.has_magic(pattern):
        meant = guess(Path(pattern).name, _names_beside(Path(pattern)))
        raise UserError(
            f"no such file: {show(pattern)}; name a file, a folder or a pattern such as 'books/*.txt'{meant}"
        )
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    paths = [path for path in map(Path, matches) if path.is_file()]
    if not paths:
        raise UserError(f"no file matches {show(pattern)}; check the pattern and the folder you are in")
    return [Source(str(path), path) for path in sorted(paths, key=lambda path: path.parts)]


def _names_beside(path: Path) -> list[str]:
    """The names in the folder where the file would be."""
    try:
        with os.scandir(path.parent) as entries:
            return [entry.name for entry in islice(entries, MOST_GUESSED)]
    except (OSError, ValueError):
        return []


def _walk(folder: Path) -> list[Source]:
    def refuse(error: OSError) -> None:
        raise UserError(f"{show(error.filename)} cannot be read: {error.strerror}; check its permissions")

    paths = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(parent) / name for name in files if not name.startswith(".") and _is_text(Path(name))]
    if not paths and (folder / "config.json").is_file():
        raise UserError(
            f"the folder {show(str(folder))} is a model, not a text: give an option such as --from-teachers or --from "
            "once for each model, and a pattern in quotes"
        )
    if not paths:
        wanted = " ".join([*sorted(TEXT_SUFFIXES), *sorted(CONVERTED_SUFFIXES)])
        raise UserError(
            f"the folder {show(str(folder))} has no text files ({wanted}, plain or .gz or .xz); "
            "name its files, or a pattern, to use others"
        )
    return [Source(str(path), path) for path in sorted(paths, key=lambda path: path.parts)]


def _is_text(name: Path) -> bool:
    suffix = suffix_of(name)
    if suffix == "":
        return name.suffix.lower() in PACKED_SUFFIXES
    return suffix in TEXT_SUFFIXES | CONVERTED_SUFFIXES


@dataclass(frozen=True, eq=False)
class _Spooled(Source):
    """A temporary copy, deleted together with this object."""

    def __post_init__(self) -> None:
        weakref.finalize(self, self.path.unlink, missing_ok=True)


def _spool(name: str, stream: BinaryIO) -> Source:
    path = Path(tempfile.gettempdir(), f"clearhead-{secrets.token_hex(8)}")
    spooled = _Spooled(name, path)  # registered before the file exists, so that it is always deleted
    try:
        with open(path, "xb", opener=_for_the_user_alone) as copy:
            plain = None
            while block := stream.read(BLOCK):
                if plain is None:
                    plain = not block.startswith((_GZIP, _XZ)) and encoding_of(block) == "utf-8"
                if plain and b"\0" in block:
                    raise UserError(
                        f"{show(name)} is not text: it contains NUL bytes; give plain text in UTF-8"
                    )
                copy.write(block)
    except OSError as error:
        raise UserError(
            f"{show(name)} cannot be stored in {path}: {error.strerror}; free some space there"
        ) from None
    return spooled


def _for_the_user_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
