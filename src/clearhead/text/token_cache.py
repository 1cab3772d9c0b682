"""The token cache: a text's ids on disk, in memory-mapped shards.

The manifest has a checksum of each shard, which is compared when a process first opens it: a single changed bit would
change the trained model. A damaged entry is written again.
"""

import hashlib
import io
import itertools
import os
import re
import secrets
import shutil
import socket
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.files import NO_ROOM, make_folder, open_regular, read_sealed, seal, settle_folder, to_json_text
from clearhead.text.corpus import Count, Document, cut, measure, thin
from clearhead.text.sources import show
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import END
from clearhead.text.tokens import Tokens

SHARD = 2**26  # tokens
MANIFEST = "tokens.json"
_FORMAT = 3

# The library tokenizes the texts of a batch in parallel: many small ones keep all cores busy.
_TEXT = 2**13  # characters
_BATCH = 2**20  # characters

_CHECKED = 2**22  # tokens whose checksum is computed at a time
_intact: set[tuple[object, ...]] = set()  # the shards whose checksum this process has compared

_TEMPORARY = re.compile(r"\.(?P<host>.+)-(?P<pid>\d{1,9})-[0-9a-f]{8}")


def tokenize(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    cache: Path,
    shard_size: int = SHARD,
    share: float = 1.0,
    text_sha256: str | None = None,
) -> Tokens:
    """The ids of END document END document … END, cached in `cache` for this text and tokenizer.

    Without an end token, the text must be a single document, and the ids are its own.
    A `share` below 1 uses only that part of the text, spread over all of it. `text_sha256`, if known, avoids
    reading the text once more.
    """
    documents = list(documents)
    text_sha256 = text_sha256 or measure(documents)[0]
    if (tokens := find_tokens(text_sha256, tokenizer, cache, share)) is not None:
        return tokens
    dtype = np.dtype("<u2" if tokenizer.n_vocab <= 2**16 else "<u4")
    temporary = _temporary(cache)
    try:
        make_folder(cache)
        _sweep(cache)
        temporary.mkdir()
        count = Count()
        texts = _texts([count.over(document) for document in documents], tokenizer, share)
        ends = _Ends(tokenizer.end_id)
        blocks = ends.over(_encode(texts, tokenizer, dtype))
        shards, checksums = _write_shards(blocks, temporary, dtype, shard_size)
        if count.sha256 != text_sha256:
            raise UserError("the text changed while it was being read: run this again when it is complete")
        n_bytes = count.n_bytes if share >= 1 else None
        manifest: dict[str, object] = {
            "n_bytes": n_bytes,
            "dtype": dtype.str,
            "shards": shards,
            "checksums": checksums,
        }
        _write_manifest(temporary, manifest | {"separator": ends.separator})
        return _publish(temporary, _folder(cache, text_sha256, tokenizer, share))
    except OSError as error:
        if error.errno in NO_ROOM:
            most = (share * measure(documents)[1] + len(documents) + 1) * dtype.itemsize / 1e6
            raise UserError(
                f"not enough space in {cache} for the text's tokens, which need up to {most:.1f} MB: "
                "free some space, or choose another folder with CLEARHEAD_HOME"
            ) from None
        raise UserError(
            f"tokens cannot be stored in {cache}: {error.strerror}; choose another folder with CLEARHEAD_HOME"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def find_tokens(text_sha256: str, tokenizer: Tokenizer, cache: Path, share: float = 1.0) -> Tokens | None:
    """The cached tokens of a text, or of a share of it."""
    return _open(_folder(cache, text_sha256, tokenizer, share))


def _folder(cache: Path, text_sha256: str, tokenizer: Tokenizer, share: float) -> Path:
    part = "" if share >= 1 else f" {share!r}"
    said = f"{_FORMAT} {text_sha256} {tokenizer.end_id} {tokenizer.to_json()}{part}"
    return cache / hashlib.sha256(said.encode()).hexdigest()[:32]


class _Ends:
    """Counts the end tokens of a text while it is written: one document has two, before and after it."""

    def __init__(self, end_id: int | None) -> None:
        self.end_id, self.count = end_id, 0  # without an end token, nothing is counted

    def over(self, blocks: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        for block in blocks:
            self.count += int((block == self.end_id).sum())
            yield block

    @property
    def separator(self) -> int | None:
        """The token between documents, if there are several."""
        return self.end_id if self.count > 2 else None


def _encode(
    texts: Iterator[str | None], tokenizer: Tokenizer, dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    end = [] if tokenizer.end_id is None else [tokenizer.end_id]
    if end:
        yield np.array(end, dtype)
    ended = False
    for batch in _batched(texts):
        if tokenizer.end_id is None:
            if ended or None in batch[:-1]:
                tokenizer.need_end("a text of several documents")
            ended = batch[-1] is None
        encoded = iter(tokenizer.encode_batch([text for text in batch if text is not None]))
        ids = [end if text is None else next(encoded) for text in batch]
        yield np.fromiter(itertools.chain.from_iterable(ids), dtype)


def _texts(documents: Sequence[Document], tokenizer: Tokenizer, share: float) -> Iterator[str | None]:
    """The documents split into short texts, with None after each document that contributes any.

    END in a file separates documents; newlines beside it belong to neither.
    """
    for number, document in enumerate(documents):
        taken = False
        for start, stretch in thin(document.pieces(), number, share):
            tokenizer.check(stretch.replace(END, ""), show(document.name), start)
            for i, part in enumerate(stretch.split(END)):
                if i and taken:
                    yield None
                    taken = False
                text = part if part == stretch else part.strip("\n")
                yield from cut(text, _TEXT)
                taken = taken or bool(text)
        if taken:
            yield None


def _batched(texts: Iterable[str | None]) -> Iterator[list[str | None]]:
    batch: list[str | None] = []
    length = 0
    for text in texts:
        batch.append(text)
        length += len(text or "")
        if length >= _BATCH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _write_shards(
    blocks: Iterator[NDArray[Any]], folder: Path, dtype: np.dtype[Any], size: int
) -> tuple[list[int], list[int]]:
    """Write the ids to files of `size` ids each, the last one possibly shorter.

    Return their lengths and the checksums of their ids.
    """
    nothing = np.empty(0, dtype)
    lengths: list[int] = []
    checksums: list[int] = []
    rest = next(blocks, nothing)
    while len(rest):
        with (folder / _shard_name(len(lengths))).open("xb") as file:
            _write_header(file, dtype, size)
            length = checksum = 0
            while len(rest) and length < size:
                part, rest = rest[: size - length], rest[size - length :]
                file.write(data := part.tobytes())
                checksum = zlib.crc32(data, checksum)
                length += len(part)
                if not len(rest):
                    rest = next(blocks, nothing)
            # The length is known only now. The header keeps its size: numpy leaves room for a longer number.
            begin = file.tell() - length * dtype.itemsize
            file.seek(0)
            _write_header(file, dtype, length)
            assert file.tell() == begin, f"the header has {file.tell()} bytes, expected {begin}"
            _settle(file)
        lengths.append(length)
        checksums.append(checksum)
    return lengths, checksums


def _write_header(file: BinaryIO, dtype: np.dtype[Any], length: int) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_manifest(folder: Path, manifest: dict[str, object]) -> None:
    with (folder / MANIFEST).open("xb") as file:
        file.write(to_json_text(seal(manifest)).encode())
        _settle(file)
    settle_folder(folder)


def _publish(temporary: Path, folder: Path) -> Tokens:
    """Rename the finished folder; if another process was first, use its result."""
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        if (tokens := _open(folder)) is not None:
            return tokens
        damaged = _temporary(folder.parent)
        folder.rename(damaged)
        shutil.rmtree(damaged, ignore_errors=True)
        temporary.rename(folder)
    settle_folder(folder.parent)
    tokens = _open(folder)
    assert tokens is not None, f"{folder} was written but could not be verified"
    return tokens


def _open(folder: Path) -> Tokens | None:
    """The tokens in a folder, or None if there are none or they are damaged."""
    try:
        manifest = read_sealed(folder / MANIFEST)
        dtype = np.dtype(manifest["dtype"])
        shards = []
        for i, length in enumerate(manifest["shards"]):
            shard = _open_shard(folder / _shard_name(i), dtype, length, manifest["checksums"][i])
            if shard is None:
                return None
            shards.append(shard)
        n_bytes = None if manifest["n_bytes"] is None else int(manifest["n_bytes"])
        separator = None if manifest["separator"] is None else int(manifest["separator"])
        return Tokens(shards, 0, sum(manifest["shards"]), n_bytes, separator=separator)
    except (UserError, OSError, KeyError):  # the manifest is missing, damaged, or of a different version
        return None


def _open_shard(path: Path, dtype: np.dtype[Any], length: int, checksum: int) -> NDArray[Any] | None:
    """The ids in a file, or None if it is not exactly what was written."""
    expected = io.BytesIO()
    _write_header(expected, dtype, length)
    header = expected.getvalue()
    with open_regular(path) as file:
        about = os.fstat(file.fileno())
        if about.st_size != len(header) + length * dtype.itemsize or file.read(len(header)) != header:
            return None
    shard = np.asarray(np.memmap(path, dtype, "r", len(header), (length,)))
    seen = (path, checksum, about.st_size, about.st_mtime_ns, about.st_ino)
    if seen not in _intact:
        found = 0
        for at in range(0, length, _CHECKED):
            found = zlib.crc32(shard[at : at + _CHECKED].data, found)
        if found != checksum:
            return None
        _intact.add(seen)
    return shard


def _shard_name(i: int) -> str:
    return f"tokens-{i:05d}.npy"


def _temporary(cache: Path) -> Path:
    return cache / f".{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _sweep(cache: Path) -> None:
    """Remove what dead processes on this machine left behind."""
    for path in cache.iterdir():
        found = _TEMPORARY.fullmatch(path.name)
        if found and found["host"] == socket.gethostname() and not _alive(int(found["pid"])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # on Windows, os.kill(pid, 0) sends Ctrl-C instead of checking the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
