"""The header of a GGUF file, parsed as untrusted input: its claims are checked before use.

It contains the magic number, version and counts; metadata as keys and values; and for each tensor its name,
shape, type and offset. The tensors' data follows, each tensor at a multiple of the alignment. Numbers are
little-endian; dimensions are listed innermost first
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

from __future__ import annotations

import contextlib
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from clearhead.errors import UserError
from clearhead.files import describe_placeholder
from clearhead.formats.gguf.blocks import KINDS

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_DIMENSIONS = 4

# Limits on the work that a header can cause. The largest published vocabularies have 262,144 tokens and 514,906
# merges, in a header of about 15 MB; the largest models have a few thousand tensors.
LARGEST_HEADER = 2**25  # bytes
LONGEST_STRING = 2**20  # bytes
LONGEST_NAME = 2**10  # bytes
MOST_STRINGS = 2**20  # in all arrays together
MOST_ENTRIES = 2**16  # limit on the number of keys, and on that of tensors
LARGEST_ALIGNMENT = 2**16
DEFAULT_ALIGNMENT = 32

# Value types by their number in a file. A bool is a byte that must be 0 or 1.
_SCALARS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("<u1"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_SMALLEST_ENTRY = 8 + 1 + 4 + 1  # bytes of an entry with a one-letter key and a one-byte value
_SMALLEST_TENSOR = 8 + 1 + 4 + 4 + 8  # bytes of the entry of a scalar tensor with a one-letter name


@dataclass(frozen=True)
class TensorInfo:
    """The position and type of a tensor in the file."""

    name: str
    shape: tuple[int, ...]  # outermost dimension first
    kind: str  # such as "Q4_1"
    offset: int  # bytes from the start of the file
    n_bytes: int


class ShortError(Exception):
    """The header continues in the file after the bytes read so far."""


class Header:
    """A cursor over the header's bytes that raises an error instead of reading past the end."""

    def __init__(self, path: Path, data: bytes, size: int) -> None:
        self.path = path
        self.data = data
        self.size = size  # of the whole file
        self.at = 0
        self.n_string = 0

    def read(self) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
        n_tensor, n_key = self._read_start()
        metadata: dict[str, Any] = {}
        for _ in range(n_key):
            key = self._read_name("a key")
            if key in metadata:
                self._refuse(f"key {shown(key)} occurs twice, expected once")
            metadata[key] = self._read_value(key)
        alignment = self._alignment(metadata)
        entries = [self._read_tensor() for _ in range(n_tensor)]
        data_start = -(-self.at // alignment) * alignment
        tensors: dict[str, TensorInfo] = {}
        for name, shape, kind, offset in entries:
            if name in tensors:
                self._refuse(f"tensor {shown(name)} occurs twice, expected once")
            if offset % alignment:
                self._refuse(
                    f"tensor {shown(name)} is at {offset}, expected a multiple of the alignment {alignment}"
                )
            tensors[name] = self._place(name, shape, kind, data_start + offset)
        self._refuse_overlap(tensors)
        return metadata, tensors

    def _read_start(self) -> tuple[int, int]:
        magic = self.data[:4]
        if magic != MAGIC:
            if magic and (what := describe_placeholder(self.data[:64])) is not None:
                raise UserError(f"{self.path} {what}")
            self._refuse(
                f"begins with {magic!r}, expected {MAGIC!r}: it is not a GGUF file", "name one that is"
            )
        self.at = 4
        version = self._read_int(4, "its version")
        if version not in VERSIONS:
            if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
                self._refuse("is big-endian, expected little-endian", "convert it for this machine")
            self._refuse(f"has GGUF version {version}, expected 2 or 3", "convert the model again")
        n_tensor = self._read_int(8, "its number of tensors")
        n_key = self._read_int(8, "its number of keys")
        for what, n, smallest in (
            ("tensors", n_tensor, _SMALLEST_TENSOR),
            ("keys", n_key, _SMALLEST_ENTRY),
        ):
            most = min(MOST_ENTRIES, (self.size - self.at) // smallest)
            if n > most:
                self._refuse(f"claims {n} {what}, expected at most {most} in {self.size} bytes")
        return n_tensor, n_key

    def _read_value(self, key: str) -> Any:
        kind = self._read_int(4, f"the type of {shown(key)}")
        if kind == _STRING:
            return self._read_string(f"the value of {shown(key)}", LONGEST_STRING)
        if kind != _ARRAY:
            return self._read_scalars(key, kind, 1)[0].item()
        kind = self._read_int(4, f"the type of {shown(key)}")
        n = self._read_int(8, f"the length of {shown(key)}")
        if kind == _STRING:
            self.n_string += n
            if self.n_string > MOST_STRINGS:
                self._refuse(f"{shown(key)} is an array of {n} strings, expected at most {MOST_STRINGS}")
            self._need(8 * n, f"{n} strings of {shown(key)}")
            return self._read_strings(key, n)
        if kind == _ARRAY:
            self._refuse(f"{shown(key)} is an array of arrays, expected an array of numbers or strings")
        return self._read_scalars(key, kind, n)

    def _read_scalars(self, key: str, kind: int, n: int) -> np.ndarray[Any, Any]:
        dtype = _SCALARS.get(kind)
        if dtype is None:
            self._refuse(f"{shown(key)} has the value type {kind}, expected 0 to 12")
        n_bytes = n * dtype.itemsize
        self._need(n_bytes, f"the value of {shown(key)}")
        values = np.frombuffer(self.data, dtype, n, self.at).copy()
        self.at += n_bytes
        if kind != _BOOL:
            return values
        if n and values.max() > 1:
            self._refuse(f"{shown(key)} has the boolean value {values.max()}, expected 0 or 1")
        return values.astype(np.bool_)

    def _read_strings(self, key: str, n: int) -> list[str]:
        """Like `_read_string`, inlined: a vocabulary has about 100,000 strings."""
        data, at, size, length_at = self.data, self.at, len(self.data), struct.Struct("<Q").unpack_from
        strings: list[str] = []
        # A premature end is reported by the slow path below.
        with contextlib.suppress(struct.error, UnicodeDecodeError):
            for _ in range(n):
                (length,) = length_at(data, at)
                end = at + 8 + length
                if length > LONGEST_STRING or end > size:
                    break
                strings.append(str(data[at + 8 : end], "utf-8"))
                at = end
        self.at = at
        if len(strings) < n:
            self._read_string(f"string {len(strings)} of {shown(key)}", LONGEST_STRING)
        assert len(strings) == n
        return strings

    def _read_tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._read_name("a tensor name")
        n_dimension = self._read_int(4, f"the shape of tensor {shown(name)}")
        if n_dimension > MOST_DIMENSIONS:
            self._refuse(
                f"tensor {shown(name)} has {n_dimension} dimensions, expected at most {MOST_DIMENSIONS}"
            )
        inner_first = [self._read_int(8, f"the shape of tensor {shown(name)}") for _ in range(n_dimension)]
        kind = self._read_int(4, f"the type of tensor {shown(name)}")
        offset = self._read_int(8, f"the offset of tensor {shown(name)}")
        return name, tuple(reversed(inner_first)), kind, offset

    def _place(self, name: str, shape: tuple[int, ...], number: int, offset: int) -> TensorInfo:
        if number not in KINDS:
            self._refuse(
                f"tensor {shown(name)} has the unknown type {number}",
                "use a file of a different type, such as Q8_0 or Q4_K",
            )
        kind, n_block, block_bytes = KINDS[number]
        if 0 in shape:
            self._refuse(f"tensor {shown(name)} is {_by(shape)}, expected no dimension of 0")
        row = shape[-1] if shape else 1
        if row % n_block:
            self._refuse(
                f"tensor {shown(name)} has rows of {row}, expected a multiple of {kind}'s block size {n_block}"
            )
        n_bytes = math.prod(shape) // n_block * block_bytes
        if offset + n_bytes > self.size:
            self._refuse(
                f"tensor {shown(name)} ({_by(shape)}, {kind}) ends at byte {offset + n_bytes}, "
                f"expected at most {self.size}"
            )
        return TensorInfo(name, shape, kind, offset, n_bytes)

    def _refuse_overlap(self, tensors: dict[str, TensorInfo]) -> None:
        end, before = 0, ""
        for info in sorted(tensors.values(), key=lambda info: info.offset):
            if info.offset < end:
                self._refuse(
                    f"tensor {shown(info.name)} begins at byte {info.offset}, expected {end} or later, "
                    f"where {shown(before)} ends"
                )
            end, before = info.offset + info.n_bytes, info.name

    def _alignment(self, metadata: dict[str, Any]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if (
            type(alignment) is not int
            or not 0 < alignment <= LARGEST_ALIGNMENT
            or alignment & (alignment - 1)
        ):
            self._refuse(
                f"general.alignment is {shown(alignment)}, expected a power of two up to {LARGEST_ALIGNMENT}"
            )
        return alignment

    def _read_name(self, what: str) -> str:
        name = self._read_string(what, LONGEST_NAME)
        if not name:
            self._refuse(f"has {what} of length 0, expected at least 1")
        return name

    def _read_string(self, what: str, longest: int) -> str:
        n = self._read_int(8, what)
        if n > longest:
            self._refuse(f"{what} claims {n} bytes, expected at most {longest}")
        self._need(n, what)
        try:
            text = self.data[self.at : self.at + n].decode()
        except UnicodeDecodeError as error:
            self._refuse(f"{what} is not UTF-8 at byte {self.at + error.start}")
        self.at += n
        return text

    def _read_int(self, n: int, what: str) -> int:
        self._need(n, what)
        self.at += n
        return int.from_bytes(self.data[self.at - n : self.at], "little")

    def _need(self, n: int, what: str) -> None:
        if self.at + n <= len(self.data):
            return
        if self.at + n <= self.size and len(self.data) < LARGEST_HEADER:
            raise ShortError
        if self.at + n <= self.size:
            self._refuse(f"has a header of more than {LARGEST_HEADER} bytes, expected fewer")
        self._refuse(f"ends at byte {self.size}, expected {what} up to byte {self.at + n}")

    def _refuse(self, found: str, do: str = "copy it again from its source") -> NoReturn:
        raise UserError(f"{self.path}: {found}; {do}")


def shown(value: Any) -> str:
    """For a one-line error: quoted, and truncated if long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _by(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a scalar"
