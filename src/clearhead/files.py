"""Files that are whole or not there: written beside, flushed to the disk, then renamed."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clearhead.errors import UserError

LARGEST_JSON = 2**28  # bytes; the largest tokenizer.json of a published model is some 35 MB

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Have `write` fill a temporary file, flush it, and give it its name; on any failure leave nothing."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())  # safetensors would keep it to the owner
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        settle_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)  # it can be read only by setting it
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: _write_text(temporary, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, document: Any) -> None:
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_text(path: Path) -> str:
    """The text of a small file that a model's folder should hold."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise UserError(
                f"{path} has {size} bytes, expected at most {LARGEST_JSON}; is it the right file?"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; is {path.parent} a model's folder?") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; copy it again from where it came") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a small file."""
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is not JSON; copy it again from where it came") from None
    if not isinstance(document, dict):
        raise UserError(f"{path} holds a JSON {type(document).__name__}, expected an object; copy it again")
    return document


@contextmanager
def disk_errors(folder: Path, doing: str) -> Iterator[None]:
    """What the disk refuses, said in a line: `doing` is what was tried, such as "the model was not saved"."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise UserError(
                f"no space left in {folder}: {doing}; free some, or choose another folder"
            ) from None
        raise UserError(f"{folder} cannot be written ({error.strerror}): {doing}; choose another") from None


def settle_folder(folder: Path) -> None:
    """Flush the names in a folder, so that a renamed file is still there after a power cut."""
    if os.name == "nt":
        return  # folders cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def home() -> Path:
    """Where what is worth keeping between runs lies: CLEARHEAD_HOME, or the user's data folder."""
    if given := os.environ.get("CLEARHEAD_HOME"):
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "clearhead"
