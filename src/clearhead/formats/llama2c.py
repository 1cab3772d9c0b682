"""Models of llama2.c: a `.bin` file with a short header and float32 weights, and a `tokenizer.bin` beside it.

The original layout (version 0) has no magic number: a file is recognized if its size is exactly what its
header implies.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import open_regular, read_all
from clearhead.formats.families import own
from clearhead.formats.llama2c_tokenizer import find_tokenizer
from clearhead.formats.network import check_tensors, outline, read_network
from clearhead.formats.saved import Saved
from clearhead.model.config import MOST, MOST_BLOCKS, Config

MAGIC = b"24ka"
V1_HEADER = 256  # bytes
INTS = "<7i"
_Layout = list[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Llama2cHeader:
    """What a file says about its model, and where each tensor starts."""

    version: int
    config: Config
    places: Mapping[str, tuple[int, tuple[int, ...]]]  # offset in bytes, and shape
    n_bytes: int  # of the whole file


def is_llama2c(path: Path) -> bool:
    """Whether this is a llama2.c file, including one of a version that cannot be read."""
    try:
        with open_regular(path) as file:
            return read_all(file, 4) == MAGIC or (
                (header := _read_v0(file)) is not None and _fits(header, file)
            )
    except (OSError, UserError):
        return False


def describe_truncated(path: Path) -> str | None:
    """Describe a model file that is shorter than its header implies; None for any other file."""
    try:
        with open_regular(path) as file:
            header, n_bytes = _read_v0(file), os.fstat(file.fileno()).st_size
    except OSError:
        return None
    return None if header is None or n_bytes >= header.n_bytes else _describe_size(n_bytes, header.n_bytes)


def _describe_size(n_bytes: int, expected: int) -> str:
    what = "truncated" if n_bytes < expected else "too long"
    return (
        f"is a llama2.c model, but {what}: it has {n_bytes:,} bytes, and its header implies {expected:,}; "
        "copy it again from its source"
    )


def _fits(header: Llama2cHeader, file: IO[bytes]) -> bool:
    return os.fstat(file.fileno()).st_size == header.n_bytes


def read_config(path: Path) -> Config:
    return _read_header(path).config


def load(path: Path, dtype: torch.dtype = torch.float32) -> Saved:
    """Load a model and the tokenizer beside it. Raises UserError if either is missing or invalid."""
    header = _read_header(path)
    tokenizer = find_tokenizer(path, header.config.n_vocab)
    tensors = _Tensors(path, header)
    check_tensors(str(path), len(tensors.shapes()), header.config, dtype)
    network = read_network(tensors, outline(header.config), own.FAMILY, dtype)
    return Saved(network, tokenizer, None)


class _Tensors:
    """A file's tensors by our names."""

    def __init__(self, path: Path, header: Llama2cHeader) -> None:
        self.path, self.described, self.header = path, str(path), header
        self.odd: dict[str, str] = {}
        # Each tensor in the file holds one parameter of all blocks.
        self._shapes = {
            name: shape[1:] if i is not None else shape
            for stored, (_, shape) in header.places.items()
            for i, name in _names(stored, shape)
        }

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        stored, i = (name, 0)
        if name.startswith("blocks."):
            _, number, rest = name.split(".", 2)
            stored, i = f"blocks.*.{rest}", int(number)
        offset, shape = self.header.places[stored][0], self._shapes[name]
        n_bytes = 4 * math.prod(shape)
        try:
            with open_regular(self.path) as file:
                file.seek(offset + i * n_bytes)
                data = read_all(file, n_bytes)
        except OSError as error:
            raise UserError(f"{self.path} cannot be read: {error.strerror}") from None
        if len(data) < n_bytes:
            raise UserError(f"{self.path} was truncated while it was read; copy it again from its source")
        tensor = torch.frombuffer(bytearray(data), dtype=torch.float32).view(shape)
        return _halve(name, tensor, self.header.config).to(dtype)


def _names(stored: str, shape: tuple[int, ...]) -> list[tuple[int | None, str]]:
    if "*" not in stored:
        return [(None, stored)]
    return [(i, stored.replace("*", str(i))) for i in range(shape[0])]


def _halve(name: str, tensor: Tensor, config: Config) -> Tensor:
    """llama2.c rotates adjacent features together; here, feature i is rotated with i + D/2."""
    if not name.endswith(("attention.query.weight", "attention.key.weight")):
        return tensor
    pairs = tensor.view(-1, config.d_head // 2, 2, config.d_model)
    return pairs.transpose(1, 2).reshape(tensor.shape)


def _read_header(path: Path) -> Llama2cHeader:
    try:
        with open_regular(path) as file:
            header = _read_v1(path, file) if read_all(file, 4) == MAGIC else _read_v0(file)
            n_bytes = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if header is None:
        raise UserError(f"{path} is not a llama2.c file: its header is not that of a model")
    if n_bytes != header.n_bytes:
        raise UserError(f"{path} {_describe_size(n_bytes, header.n_bytes)}")
    return header


def _read_v0(file: IO[bytes]) -> Llama2cHeader | None:
    """The header of a version 0 file; None if it cannot be that of a model."""
    file.seek(0)
    start = read_all(file, struct.calcsize(INTS))
    if len(start) < struct.calcsize(INTS):
        return None
    numbers = struct.unpack(INTS, start)
    tied = numbers[5] > 0  # a negative vocabulary size means that the matrices are separate
    config = _make_config((*numbers[:5], abs(numbers[5]), numbers[6]), tied)
    if config is None:
        return None
    block = _block_layout(config)
    angles = (config.n_context, config.d_head // 2)
    names = ("norm.gain", *_ATTENTION, "norm2.gain")
    layout: _Layout = [("embedding.weight", (config.n_vocab, config.d_model))]
    layout += [block[name] for name in (*names, *_FEEDFORWARD)]
    layout += [("final_norm.gain", (config.d_model,)), ("cosines", angles), ("sines", angles)]
    return _place(0, config, layout, struct.calcsize(INTS))


def _read_v1(path: Path, file: IO[bytes]) -> Llama2cHeader:
    start = read_all(file, V1_HEADER - len(MAGIC))
    if len(start) < V1_HEADER - len(MAGIC):
        n_bytes = len(MAGIC) + len(start)
        raise UserError(
            f"{path} is a llama2.c model, but truncated: it has {n_bytes} bytes, and its header alone has {V1_HEADER}; "
            "copy it again from its source"
        )
    version = struct.unpack_from("<i", start)[0]
    if version == 2:
        raise UserError(
            f"{path} has the quantized weights of llama2.c's version 2, which is not supported: export the model "
            "again with --version 0 or 1"
        )
    if version != 1:
        raise UserError(f"{path} has version {version} of llama2.c's format, expected 0 or 1")
    config = _make_config(struct.unpack_from(INTS, start, 4), bool(start[4 + struct.calcsize(INTS)]))
    if config is None:
        raise UserError(
            f"{path} is damaged: its header is not that of a model; copy it again from its source"
        )
    block = _block_layout(config)
    layout: _Layout = [block["norm.gain"], block["norm2.gain"], ("final_norm.gain", (config.d_model,))]
    layout += [("embedding.weight", (config.n_vocab, config.d_model))]
    layout += [block[name] for name in (*_ATTENTION, *_FEEDFORWARD)]
    return _place(1, config, layout, V1_HEADER)


_ATTENTION = tuple(f"attention.{role}.weight" for role in ("query", "key", "value", "output"))
_FEEDFORWARD = ("feedforward.gate.weight", "feedforward.second.weight", "feedforward.first.weight")


def _block_layout(config: Config) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of all blocks by their names in one block: a name with * for the block number, and a shape."""
    n, width, hidden = config.n_block, config.d_model, config.d_hidden
    shared = config.n_kv_head * config.d_head
    shapes: dict[str, tuple[int, ...]] = {
        "norm.gain": (n, width),
        "norm2.gain": (n, width),
        "attention.query.weight": (n, width, width),
        "attention.key.weight": (n, shared, width),
        "attention.value.weight": (n, shared, width),
        "attention.output.weight": (n, width, width),
        "feedforward.gate.weight": (n, hidden, width),
        "feedforward.second.weight": (n, width, hidden),
        "feedforward.first.weight": (n, hidden, width),
    }
    return {name: (f"blocks.*.{name}", shape) for name, shape in shapes.items()}


def _place(version: int, config: Config, layout: _Layout, start: int) -> Llama2cHeader:
    """The header with the offset of each tensor."""
    if not config.tied:
        layout = [*layout, ("unembedding.weight", (config.n_vocab, config.d_model))]
    places, offset = {}, start
    for name, shape in layout:
        places[name] = offset, shape
        offset += 4 * math.prod(shape)
    for name in ("cosines", "sines"):  # of the rotary positions, which are computed here
        places.pop(name, None)
    return Llama2cHeader(version, config, places, offset)


def _make_config(numbers: tuple[int, ...], tied: bool) -> Config | None:
    """The config, or None if the numbers cannot be those of a model."""
    width, hidden, n_block, n_head, n_kv_head, n_vocab, n_context = numbers
    if not all(0 < number <= MOST for number in numbers) or n_block > MOST_BLOCKS:
        return None
    if width % n_head or n_head % n_kv_head or width // n_head % 2:
        return None
    return Config(
        n_vocab=n_vocab,
        n_context=n_context,
        n_block=n_block,
        n_head=n_head,
        n_kv_head=n_kv_head,
        d_model=width,
        d_hidden=hidden,
        norm="rms",
        norm_epsilon=1e-5,
        position="rotary",
        feedforward="swiglu",
        qkv_bias=False,
        output_bias=False,
        feedforward_bias=False,
        tied=tied,
    )
