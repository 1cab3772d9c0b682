"""Reading files safely, and writing them atomically: to a temporary file that is flushed to disk, then renamed."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from clearhead.errors import UserError

LARGEST_JSON = 2**23  # bytes; parsed JSON can take twenty times as much memory
LARGEST_CONTENTS = 2**21  # bytes of a zip archive's table of contents, in which a member takes about 80

SEAL = "sealed"  # the key of the hash in our JSON files

LONGEST_NAME = 255  # longest file name accepted, in characters

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file, then flush and rename the file; leave nothing behind on failure."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())  # safetensors would make it readable only by its owner
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        settle_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)  # the umask can only be read by setting it
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: _write_text(temporary, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, document: Any) -> None:
    write_text(path, to_json_text(document))


def to_json_text(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """The document with a hash of everything else in it, which `read_sealed` checks."""
    return {**document, SEAL: _hash_document(document)}


def _hash_document(document: dict[str, Any]) -> str:
    content = {name: value for name, value in document.items() if name != SEAL}
    read = json.loads(json.dumps(content))  # as it will be read: keys are strings
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; raise UserError for a name with a path, or a link that leads elsewhere."""
    if Path(name).name != name or "\\" in name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise UserError(f"{folder} refers to the file {name[:80]!r}: expected a file name without a path")
    path, home = folder / name, folder.resolve()
    allowed = {home}
    if home.parent.name == "snapshots":  # the Hugging Face cache stores files in ../../blobs, named by hash
        allowed.add(home.parent.parent / "blobs")
    try:
        if path.is_symlink() and path.resolve().parent not in allowed:
            raise UserError(
                f"{path} is a link to a file outside its folder: replace the link with a copy of the file"
            )
    except (OSError, RuntimeError):
        raise UserError(f"{path} is a broken link: replace it with the file itself") from None
    return path


def open_regular(path: Path, expected: str = "a file") -> io.FileIO:
    """Open a regular file, without blocking on a pipe; raise UserError for a pipe, device or folder."""
    try:
        mode = path.stat().st_mode
    except ValueError:  # a NUL in the name
        raise UserError(f"no such file: {path}; expected {expected}") from None
    _refuse_irregular(path, mode, expected)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(os.open(path, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 (a handle, kept open)
    try:
        _refuse_irregular(path, os.fstat(file.fileno()).st_mode, expected)
    except BaseException:
        file.close()
        raise
    return file


def _refuse_irregular(path: Path, mode: int, expected: str) -> None:
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
        raise UserError(f"{path} is {what}, expected {expected}; name the file itself")


def read_all(file: IO[bytes], n: int) -> bytes:
    """The next `n` bytes, or fewer at the end of the file."""
    pieces = []
    while n > 0 and (piece := file.read(n)):
        pieces.append(piece)
        n -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def list_archive(file: IO[bytes]) -> list[zipfile.ZipInfo]:
    """The members of a zip archive. Raises ValueError or zipfile.BadZipFile if it has too many, or is damaged."""
    with zipfile.ZipFile(_Contents(file)) as archive:
        return list(archive.infolist())


class _Contents:
    """An archive of which zipfile may read only the table of contents, in one call."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.seek, self.tell, self.seekable = file, file.seek, file.tell, file.seekable

    def read(self, n: int = -1) -> bytes:
        if n > LARGEST_CONTENTS:
            raise ValueError(f"its table of contents has {n} bytes, expected at most {LARGEST_CONTENTS}")
        return read_all(self.file, LARGEST_CONTENTS if n < 0 else n)


def describe_placeholder(start: bytes) -> str | None:
    """Describe, from its first bytes, a file that an incomplete download left in place of the real one."""
    if not start:
        return "is empty: copy it again from its source"
    if start.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not the file itself: run `git lfs pull` in its folder"
    if re.match(rb"\s*<(!doctype|html)", start, re.IGNORECASE):
        return "is a web page, not the file itself: download the file"
    return None


def read_text(path: Path, at_most: int = LARGEST_JSON) -> str:
    """The text of a small file in a model folder."""
    try:
        return _read_text(path, at_most)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; is {path.parent} a model folder?") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; copy it again from its source") from None


def _read_text(path: Path, at_most: int) -> str:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > at_most:
                raise UserError(f"{path} has {size} bytes, expected at most {at_most}; is it the right file?")
            return read_all(file, size).decode("utf-8")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a small file."""
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is not valid JSON; copy it again from its source") from None
    if not isinstance(document, dict):
        raise UserError(
            f"{path} contains a JSON {type(document).__name__}, expected an object; copy it again"
        )
    return document


def read_sealed(path: Path) -> dict[str, Any]:
    """The JSON object in a file that Clearhead wrote with `seal`; a file without a hash is read as it is."""
    return check_seal(path, read_json(path))


def check_seal(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The content of a sealed document. Raises UserError if it does not match its hash."""
    if SEAL in document and document[SEAL] != _hash_document(document):
        raise UserError(
            f"{path} is damaged: its content does not match its hash; copy it again from its source, or delete its "
            f"{SEAL!r} if you edited it"
        )
    return {name: value for name, value in document.items() if name != SEAL}


def hash_file(path: Path) -> str | None:
    """The sha256 of a small file; None if there is none. A file that has not changed is read only once."""
    try:
        about = path.stat()
        return _hash_file(path, about.st_size, about.st_mtime_ns, about.st_ino)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1000)
def _hash_file(path: Path, *_: int) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_own_text(path: Path, expected: str, at_most: int = LARGEST_JSON) -> str:
    """The text of a file that the user wrote."""
    try:
        return _read_text(path, at_most)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; expected {expected}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; expected {expected}") from None


def read_own_json(path: Path, expected: str) -> dict[str, Any]:
    """The JSON object in a file that the user wrote; errors say where the JSON is invalid."""
    text = read_own_text(path, expected)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UserError(f"{path} is not valid JSON: {place}: {error.msg}") from None
    except RecursionError:
        raise UserError(f"{path} is not valid JSON: it is nested too deeply") from None
    except ValueError:
        raise UserError(f"{path} is not valid JSON: a number has too many digits") from None
    if not isinstance(document, dict):
        raise UserError(f"{path} contains a JSON {type(document).__name__}, expected an object")
    return document


@contextmanager
def disk_errors(folder: Path, doing: str) -> Iterator[None]:
    """Turn disk errors into UserErrors; `doing` is the consequence, such as "the model was not saved"."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise UserError(
                f"no space left in {folder}: {doing}; free some space, or choose another folder"
            ) from None
        reason = error.strerror or "no space left, or the disk failed"
        raise UserError(f"{folder} cannot be written ({reason}): {doing}; choose another folder") from None


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, unless they exist, so that they survive a power failure."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        with suppress(PermissionError):  # some shared folders can be written to, but not read
            settle_folder(each.parent)


def settle_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a renamed file survives a power failure."""
    if os.name == "nt":
        return  # folders cannot be opened on Windows
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def home() -> Path:
    """The folder for data kept between runs: CLEARHEAD_HOME, or the user's data folder."""
    if given := os.environ.get("CLEARHEAD_HOME"):
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "clearhead"
