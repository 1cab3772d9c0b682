"""Tokens: a text's ids on disk, in shards that are mapped and never read whole."""

import errno
import hashlib
import itertools
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.files import settle_folder
from clearhead.text.corpus import Count, Document, cut, measure, thin
from clearhead.text.sources import show
from clearhead.text.tokenizer import Tokenizer

SHARD = 2**26  # tokens
IGNORED = -100  # in place of a target, as torch's cross entropy has it
MANIFEST = "tokens.json"
_FORMAT = 1

# The library tokenizes the texts of a batch in parallel: many small ones keep all cores busy.
_TEXT = 2**13  # characters
_BATCH = 2**20  # characters

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPORARY = re.compile(r"\.(?P<host>.+)-(?P<pid>\d{1,9})-[0-9a-f]{8}")


class Tokens:
    """A read-only row of ids over any number of shards.

    `n_bytes` is the length of the text in bytes of UTF-8, known for a whole text only. `targets` are the
    same ids as they are to be learned: the row itself, or one as long with IGNORED where nothing is.
    """

    def __init__(
        self,
        shards: Sequence[NDArray[Any]],
        start: int,
        stop: int,
        n_bytes: int | None = None,
        targets: "Tokens | None" = None,
    ) -> None:
        self._shards = shards
        self._ends = np.cumsum([len(shard) for shard in shards])
        assert 0 <= start <= stop <= (self._ends[-1] if shards else 0), (
            f"{start}:{stop} is not within the shards"
        )
        self._start = start
        self._stop = stop
        self.n_bytes = n_bytes
        assert targets is None or len(targets) == len(self)
        self._targets = targets

    @classmethod
    def of(cls, ids: NDArray[Any] | Sequence[int], targets: "Tokens | None" = None) -> "Tokens":
        """Ids in memory."""
        array = np.asarray(ids, dtype=np.int64) if not isinstance(ids, np.ndarray) else ids
        assert array.ndim == 1, f"ids have the shape {array.shape}, expected one dimension"
        return cls([array], 0, len(array), targets=targets)

    @property
    def targets(self) -> "Tokens":
        return self if self._targets is None else self._targets

    @property
    def all_count(self) -> bool:
        """Whether every token is to be learned."""
        return self._targets is None

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, where: slice) -> NDArray[np.int64]:
        start, stop, step = where.indices(len(self))
        assert step == 1, f"tokens can be taken in steps of 1 only, got {step}"
        start, stop = self._start + start, self._start + max(start, stop)
        out = np.empty(stop - start, dtype=np.int64)
        shard = int(np.searchsorted(self._ends, start, side="right"))
        at = start
        while at < stop:
            first = int(self._ends[shard]) - len(self._shards[shard])
            until = min(stop, int(self._ends[shard]))
            out[at - start : until - start] = self._shards[shard][at - first : until - first]
            at, shard = until, shard + 1
        return out

    def part(self, start: int, stop: int | None = None) -> "Tokens":
        """Some of them, without copying."""
        start, stop, _ = slice(start, stop).indices(len(self))
        targets = None if self._targets is None else self._targets.part(start, stop)
        return Tokens(self._shards, self._start + start, self._start + max(start, stop), targets=targets)

    def split(self, fraction: float) -> tuple["Tokens", "Tokens"]:
        """All but the last `fraction`, for training, and the last, for validation. Nothing is copied."""
        if not 0 <= fraction < 1:
            raise UserError(
                f"the validation fraction is {fraction}, expected at least 0 and below 1, such as 0.1"
            )
        middle = int(len(self) * (1 - fraction))
        return self.part(0, middle), self.part(middle)


def tokenize(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    cache: Path,
    shard_size: int = SHARD,
    share: float = 1.0,
    text_hash: str | None = None,
) -> Tokens:
    """The ids of END document END document … END, kept in `cache` for this text and this tokenizer.

    A `share` below 1 takes only so much of the text, from all over it. `text_hash`, where it is known, saves
    reading the text once more.
    """
    documents = list(documents)
    text = text_hash or measure(documents)[0]
    if (tokens := find_tokens(text, tokenizer, cache, share)) is not None:
        return tokens
    dtype = np.dtype("<u2" if tokenizer.n_vocab <= 2**16 else "<u4")
    temporary = _temporary(cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        temporary.mkdir()
        count = Count()
        texts = _texts([count.over(document) for document in documents], tokenizer, share)
        shards = _write_shards(_encode(texts, tokenizer, dtype), temporary, dtype, shard_size)
        if count.text_hash != text:
            raise UserError("the text changed while it was being read; run this again when it is at rest")
        n_bytes = count.n_bytes if share >= 1 else None
        _write_manifest(temporary, {"n_bytes": n_bytes, "dtype": dtype.str, "shards": shards})
        return _publish(temporary, _folder(cache, text, tokenizer, share))
    except OSError as error:
        if error.errno in _NO_ROOM:
            most = (share * measure(documents)[1] + len(documents) + 1) * dtype.itemsize / 1e6
            raise UserError(
                f"no room in {cache} for the text's tokens, which need up to {most:.1f} MB; "
                "free some space, or choose another folder with CLEARHEAD_HOME"
            ) from None
        raise UserError(
            f"no tokens can be kept in {cache}: {error.strerror}; choose another folder with CLEARHEAD_HOME"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def find_tokens(text_hash: str, tokenizer: Tokenizer, cache: Path, share: float = 1.0) -> Tokens | None:
    """Those that are kept of a text, or of a share of it."""
    return _open(_folder(cache, text_hash, tokenizer, share))


def _folder(cache: Path, text_hash: str, tokenizer: Tokenizer, share: float) -> Path:
    part = "" if share >= 1 else f" {share!r}"
    said = f"{_FORMAT} {text_hash} {tokenizer.end_id} {tokenizer.to_json()}{part}"
    return cache / hashlib.sha256(said.encode()).hexdigest()[:32]


def _encode(
    texts: Iterator[str | None], tokenizer: Tokenizer, dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    end = [tokenizer.end_id]
    yield np.array(end, dtype)
    for batch in _batched(texts):
        encoded = iter(tokenizer.encode_batch([text for text in batch if text is not None]))
        ids = [end if text is None else next(encoded) for text in batch]
        yield np.fromiter(itertools.chain.from_iterable(ids), dtype)


def _texts(documents: Sequence[Document], tokenizer: Tokenizer, share: float) -> Iterator[str | None]:
    """The documents in short texts, and None where one ends of which something is taken."""
    for number, document in enumerate(documents):
        taken = False
        for start, stretch in thin(document.pieces(), number, share):
            tokenizer.check(stretch, show(document.name), start)
            yield from cut(stretch, _TEXT)
            taken = True
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


def _write_shards(blocks: Iterator[NDArray[Any]], folder: Path, dtype: np.dtype[Any], size: int) -> list[int]:
    """Write the ids into files of `size` each, the last shorter, and return their lengths."""
    nothing = np.empty(0, dtype)
    lengths: list[int] = []
    rest = next(blocks, nothing)
    while len(rest):
        with (folder / _shard_name(len(lengths))).open("xb") as file:
            _write_header(file, dtype, size)
            length = 0
            while len(rest) and length < size:
                part, rest = rest[: size - length], rest[size - length :]
                file.write(part.tobytes())
                length += len(part)
                if not len(rest):
                    rest = next(blocks, nothing)
            # The length is known only now. The header keeps its size: numpy leaves room for a longer number.
            data = file.tell() - length * dtype.itemsize
            file.seek(0)
            _write_header(file, dtype, length)
            assert file.tell() == data, f"the header has {file.tell()} bytes, expected {data}"
            _settle(file)
        lengths.append(length)
    return lengths


def _write_header(file: BinaryIO, dtype: np.dtype[Any], length: int) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_manifest(folder: Path, manifest: dict[str, object]) -> None:
    with (folder / MANIFEST).open("xb") as file:
        file.write(json.dumps(manifest).encode())
        _settle(file)
    settle_folder(folder)


def _publish(temporary: Path, folder: Path) -> Tokens:
    """Give the finished folder its name; where another process was first, take what it made."""
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
    assert tokens is not None, f"{folder} was written but does not verify"
    return tokens


def _open(folder: Path) -> Tokens | None:
    """The tokens in a folder, or None if there are none or the files have other sizes than they should."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        shards = []
        for i, length in enumerate(manifest["shards"]):
            path = folder / _shard_name(i)
            shard = np.load(path, mmap_mode="r")
            if shard.shape != (length,) or shard.dtype.str != manifest["dtype"]:
                return None
            if path.stat().st_size != shard.offset + shard.nbytes:
                return None
            shards.append(np.asarray(shard))
        n_bytes = None if manifest["n_bytes"] is None else int(manifest["n_bytes"])
        return Tokens(shards, 0, sum(manifest["shards"]), n_bytes)
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None


def _shard_name(i: int) -> str:
    return f"tokens-{i:05d}.npy"


def _temporary(cache: Path) -> Path:
    return cache / f".{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _sweep(cache: Path) -> None:
    """Remove what processes of this machine left behind when they died."""
    for path in cache.iterdir():
        found = _TEMPORARY.fullmatch(path.name)
        if found and found["host"] == socket.gethostname() and not _alive(int(found["pid"])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # there, signal 0 is no question but a keypress
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
