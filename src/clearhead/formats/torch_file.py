"""A PyTorch checkpoint, read without unpickling.

The file is a zip archive with a pickle, a program for a stack machine that can import and call anything. Here, only
the instructions that build plain values are followed: nothing is imported or called. A tensor becomes a `StoredTensor`,
whose numbers are read on request; any other object becomes a `Foreign`, which does nothing.
"""

from __future__ import annotations

import math
import pickletools
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import list_archive, open_regular, read_all

ZIP = b"PK\x03\x04"
# Limits, so that a file cannot exhaust memory or time. A model with 200 blocks and its optimizer's state have a pickle
# of 1 MB with 200,000 instructions.
LARGEST_PICKLE = 2**24  # bytes
MOST_INSTRUCTIONS = 2**19
# How many times the bytes of a file may be read: nanoGPT's query, key and value are one tensor, read for each.
MOST_READS = 4
DTYPES = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
}


class DamagedError(ValueError):
    """The file is not valid, or has a part that cannot be read here."""


@dataclass(frozen=True)
class Foreign:
    """A class or function that the pickle names, or an object created with it."""

    name: str


@dataclass(frozen=True)
class StoredTensor:
    """A tensor's place in the archive."""

    key: str  # of its storage
    dtype: torch.dtype
    offset: int  # in numbers
    shape: tuple[int, ...]


def describe_code(*values: Any) -> str | None:
    """Describe a checkpoint that has an object in place of one of these values, and say what to do instead."""
    names = [value.name for value in values if type(value) is Foreign]
    if not names:
        return None
    plain = re.fullmatch(r"[\w.]{1,80} [\w.]{1,80}", names[0], re.ASCII)
    name = names[0].replace(" ", ".") if plain else "a function"
    return (
        f"is a pickle that calls {name} when it is opened, which could do anything: Clearhead runs no code from a file "
        "and opens only plain weights; if you trust the file, load it with PyTorch and save only its weights, as "
        "nanoGPT or transformers does"
    )


class TorchFile:
    """The values in a checkpoint; raises UserError if the file is not valid."""

    def __init__(self, path: Path) -> None:
        self.path, self._n_read = path, 0
        try:
            with open_regular(path) as file:
                self._entries = {entry.filename: entry for entry in list_archive(file)}
                (name,) = [each for each in self._entries if each.endswith("/data.pkl")]
                self._prefix = name.removesuffix("data.pkl")
                self.values = read_pickle(_read(file, self._entries[name], LARGEST_PICKLE))
        except UserError:
            raise
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        except Exception as error:  # zipfile and pickletools raise errors of many kinds
            raise self._damaged(error) from None

    def read(self, tensor: StoredTensor, dtype: torch.dtype) -> Tensor:
        n, size = math.prod(tensor.shape), tensor.dtype.itemsize
        try:
            entry = self._entries[f"{self._prefix}data/{tensor.key}"]
            with open_regular(self.path) as file:
                self._n_read += entry.file_size
                if self._n_read > MOST_READS * file.seek(0, 2):
                    raise DamagedError("too many of its tensors share storage")
                data = _read(file, entry)
            if tensor.offset < 0 or (tensor.offset + n) * size > len(data):
                raise DamagedError("a tensor does not fit its storage")
            buffer = bytearray(data[tensor.offset * size : (tensor.offset + n) * size])
        except UserError:
            raise
        except OSError as error:
            raise UserError(f"{self.path} cannot be read: {error.strerror}") from None
        except Exception as error:
            raise self._damaged(error) from None
        if not n:
            return torch.zeros(tensor.shape, dtype=dtype)
        return torch.frombuffer(buffer, dtype=tensor.dtype).view(tensor.shape).to(dtype)

    def _damaged(self, error: Exception) -> UserError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return UserError(f"{self.path} is damaged, or not a checkpoint from PyTorch 1.6 or newer ({reason})")


def is_torch_file(path: Path) -> bool:
    """Whether this is a zip archive with a pickle, as `torch.save` writes it."""
    try:
        with open_regular(path) as file:
            names = {entry.filename for entry in list_archive(file)}
    except Exception:  # not an archive, or a damaged one
        return False
    return sum(name.endswith("/data.pkl") for name in names) == 1


def _read(file: IO[bytes], entry: zipfile.ZipInfo, at_most: int | None = None) -> bytes:
    """A member of the archive, which torch stores uncompressed."""
    name, n = entry.filename, entry.file_size
    if entry.compress_type != zipfile.ZIP_STORED or n != entry.compress_size:
        raise DamagedError(f"{name} is compressed")
    if at_most is not None and n > at_most:
        raise DamagedError(f"{name} has {n} bytes, expected at most {at_most}")
    file.seek(entry.header_offset)
    header = read_all(file, zipfile.sizeFileHeader)  # type: ignore[attr-defined]
    if not header.startswith(ZIP):
        raise DamagedError(f"{name} is not where the table of contents says")
    file.seek(sum(struct.unpack_from("<2H", header, 26)), 1)  # past its name
    data = read_all(file, n)
    if len(data) < n or zlib.crc32(data) != entry.CRC:
        raise DamagedError(f"{name} does not match its checksum")
    return data


def read_pickle(data: bytes) -> Any:
    """The plain values in a pickle. Raises DamagedError, or ValueError for invalid instructions."""
    machine = _Machine()
    for n, (code, argument, _) in enumerate(pickletools.genops(data)):
        if n == MOST_INSTRUCTIONS:
            raise DamagedError(f"the pickle has more than {MOST_INSTRUCTIONS} instructions")
        if code.name == "STOP":
            return machine.pop()
        if code.name not in machine.steps:
            raise DamagedError(f"the pickle has the instruction {code.name}")
        machine.steps[code.name](argument)
    raise DamagedError("the pickle has no end")


_MARK = Foreign("mark")


class _Machine:
    """The stack, and the instructions that are followed."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        push = self.stack.append
        plain = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE")
        self.steps: dict[str, Callable[[Any], object]] = {
            **dict.fromkeys((*plain, "BINBYTES", "SHORT_BINBYTES"), push),
            "NONE": lambda _: push(None),
            "NEWTRUE": lambda _: push(True),
            "NEWFALSE": lambda _: push(False),
            "EMPTY_DICT": lambda _: push({}),
            "EMPTY_LIST": lambda _: push([]),
            "EMPTY_TUPLE": lambda _: push(()),
            "MARK": lambda _: push(_MARK),
            "TUPLE": lambda _: push(tuple(self.pop_to_mark())),
            "TUPLE1": lambda _: push(self.pop_many(1)),
            "TUPLE2": lambda _: push(self.pop_many(2)),
            "TUPLE3": lambda _: push(self.pop_many(3)),
            "APPEND": lambda _: self.append(self.pop_many(1)),
            "APPENDS": lambda _: self.append(self.pop_to_mark()),
            "SETITEM": lambda _: self.set_items(self.pop_many(2)),
            "SETITEMS": lambda _: self.set_items(self.pop_to_mark()),
            "BINPUT": self.put,
            "LONG_BINPUT": self.put,
            "MEMOIZE": lambda _: self.put(len(self.memo)),
            "BINGET": self.get,
            "LONG_BINGET": self.get,
            "GLOBAL": lambda name: push(Foreign(name)),
            "STACK_GLOBAL": lambda _: push(_name(*self.pop_many(2))),
            "BINPERSID": lambda _: push(_storage(self.pop())),
            "REDUCE": lambda _: push(_make(*self.pop_many(2))),
            "NEWOBJ": lambda _: push(_make(*self.pop_many(2))),
            "BUILD": lambda _: self.pop(),  # an object's further attributes
            "PROTO": lambda _: None,
            "FRAME": lambda _: None,
        }

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise DamagedError("the pickle takes more values than there are")
        return self.stack.pop()

    def pop_many(self, n: int) -> tuple[Any, ...]:
        return tuple([self.pop() for _ in range(n)][::-1])

    def pop_to_mark(self) -> list[Any]:
        found: list[Any] = []
        while self.stack and self.stack[-1] is not _MARK:
            found.append(self.stack.pop())
        if not self.stack:
            raise DamagedError("the pickle takes more values than there are")
        self.stack.pop()
        return found[::-1]

    def append(self, values: Any) -> None:
        if not self.stack or type(self.stack[-1]) is not list:
            raise DamagedError("the pickle appends to something other than a list")
        self.stack[-1].extend(values)

    def set_items(self, values: Any) -> None:
        if not self.stack or type(self.stack[-1]) is not dict or len(values) % 2:
            raise DamagedError("the pickle sets items of something other than a dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) not in (str, int, float, bool, type(None)):
                key = Foreign("key")
            self.stack[-1][key] = value

    def put(self, i: int) -> None:
        if not self.stack:
            raise DamagedError("the pickle remembers a value that does not exist")
        self.memo[i] = self.stack[-1]

    def get(self, i: int) -> None:
        if i not in self.memo:
            raise DamagedError("the pickle refers to a value that does not exist")
        self.stack.append(self.memo[i])


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: torch.dtype


def _name(module: Any, name: Any) -> Foreign:
    return Foreign(f"{module} {name}" if type(module) is str and type(name) is str else "unnamed")


def _storage(given: Any) -> Any:
    """The storage that ("storage", its class, its key, its device, its size) names."""
    if type(given) is tuple and len(given) == 5 and type(given[1]) is Foreign and type(given[2]) is str:
        kind = given[1].name.removeprefix("torch ")
        if kind in DTYPES and given[2].isdecimal() and len(given[2]) < 10:
            return _Storage(given[2], DTYPES[kind])
    return Foreign("storage")


def _make(what: Any, arguments: Any) -> Any:
    """A tensor, a parameter or an ordered dict; a `Foreign` for anything else."""
    name = what.name if type(what) is Foreign else ""
    if name == "collections OrderedDict" and arguments == ():
        return {}
    if name == "torch._utils _rebuild_parameter" and type(arguments) is tuple and arguments:
        return arguments[0]
    if name == "torch._utils _rebuild_tensor_v2" and type(arguments) is tuple and len(arguments) >= 4:
        storage, offset, shape, strides = arguments[:4]
        if type(storage) is _Storage and type(offset) is int and _is_contiguous(shape, strides):
            return StoredTensor(storage.key, storage.dtype, offset, shape)
    return Foreign(name)


def _is_contiguous(shape: Any, strides: Any) -> bool:
    if type(shape) is not tuple or type(strides) is not tuple or len(shape) != len(strides) or len(shape) > 8:
        return False
    if not all(type(number) is int and 0 <= number < 2**40 for number in (*shape, *strides)):
        return False
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
