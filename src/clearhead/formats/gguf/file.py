"""An open GGUF file: its metadata, and its tensors, dequantized on request."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import IO, Any, NoReturn

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import open_regular, read_all
from clearhead.formats.gguf.blocks import KINDS, PLAIN, unpack
from clearhead.formats.gguf.header import LARGEST_HEADER, Header, ShortError, TensorInfo, shown

__all__ = ["GGUFFile", "TensorInfo"]

USUAL_HEADER = 2**22  # bytes
CHUNK = 2**20  # numbers dequantized at a time: a few MB including temporaries


class GGUFFile:
    """An open GGUF file: its metadata, and its tensors, read on request."""

    def __init__(
        self, path: Path, file: IO[bytes], metadata: dict[str, Any], tensors: dict[str, TensorInfo]
    ) -> None:
        self.path = path
        self.metadata = metadata
        self.tensors = tensors
        self._file = file
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, file.close)

    @classmethod
    def open(cls, path: Path) -> GGUFFile:
        """Open a file and read its header. Raises UserError if the file is invalid."""
        path = Path(path)
        try:
            file = open_regular(path, "a GGUF file")
            try:
                size = os.fstat(file.fileno()).st_size
                metadata, tensors = _read_header(path, file, size)
            except BaseException:
                file.close()
                raise
        except FileNotFoundError:
            raise UserError(f"no such file: {path}; name a GGUF file") from None
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}; name a GGUF file") from None
        return cls(path, file, metadata, tensors)

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def read(self, name: str, dtype: torch.dtype = torch.float32) -> Tensor:
        """Read a tensor, dequantizing it in chunks so that peak memory is little more than the size of the result."""
        info = self.tensors.get(name)
        if info is None:
            raise UserError(f"{self.path} has no tensor {shown(name)}; is it a model of the right kind?")
        if PLAIN.get(info.kind) is dtype:
            return self._read_plain(info, dtype)
        return self._read_packed(info, dtype)

    def _read_plain(self, info: TensorInfo, dtype: torch.dtype) -> Tensor:
        """Read directly into the result."""
        tensor = torch.empty(info.shape, dtype=dtype)
        flat = tensor.view(-1)
        self._fill(info, 0, flat.view(torch.uint8))
        for start in range(0, flat.numel(), CHUNK):
            self._check_numbers(info, flat[start : start + CHUNK], dtype)
        return tensor

    def _read_packed(self, info: TensorInfo, dtype: torch.dtype) -> Tensor:
        tensor = torch.empty(info.shape, dtype=dtype)
        n_block, block_bytes = _BLOCK[info.kind]
        flat = tensor.view(-1, n_block)
        step = max(1, CHUNK // n_block)
        packed = torch.empty((min(step, len(flat)), block_bytes), dtype=torch.uint8)
        unpacked = torch.empty((len(packed), n_block), dtype=torch.float32)
        for start in range(0, len(flat), step):
            result = flat[start : start + step]
            blocks = packed[: len(result)]
            self._fill(info, start * block_bytes, blocks)
            numbers = result if dtype is torch.float32 else unpacked[: len(result)]
            try:
                unpack(blocks, info.kind, numbers)
            except NotImplementedError:
                self._refuse_kind(info)
            self._check_numbers(info, numbers, dtype)
            if numbers is not result:
                result.copy_(numbers)
        return tensor

    def _fill(self, info: TensorInfo, start: int, into: Tensor) -> None:
        """Fill `into` from byte `start` of the tensor."""
        view = memoryview(into.numpy().data).cast("B")
        try:
            with self._lock:
                self._file.seek(info.offset + start)
                while view and (n := self._file.readinto(view)):  # type: ignore[attr-defined]
                    view = view[n:]
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be read: {error.strerror}; copy it again from its source"
            ) from None
        if view:
            raise UserError(
                f"{self.path} ends {len(view)} bytes too early in tensor {shown(info.name)}: "
                "it was truncated while open; copy it again"
            )

    def _check_numbers(self, info: TensorInfo, numbers: Tensor, dtype: torch.dtype) -> None:
        lowest, highest = (float(number) for number in torch.aminmax(numbers))
        largest = torch.finfo(dtype).max
        if not (-largest <= lowest and highest <= largest):  # false for NaN too
            kind = str(dtype).removeprefix("torch.")
            raise UserError(
                f"{self.path}: tensor {shown(info.name)} has numbers from {lowest:g} to {highest:g}, "
                f"expected finite ones that {kind} can represent; the model is damaged: copy it again"
            )

    def _refuse_kind(self, info: TensorInfo) -> NoReturn:
        raise UserError(
            f"{self.path}: tensor {shown(info.name)} is of type {info.kind}, which is not supported; "
            "use a file of a different type, such as Q8_0 or Q4_K"
        ) from None


_BLOCK = {name: (n_block, block_bytes) for name, n_block, block_bytes in KINDS.values()}


def _read_header(path: Path, file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
    """Read the header. Most are small; a larger one is read again, up to the limit."""
    try:
        return Header(path, read_all(file, min(size, USUAL_HEADER)), size).read()
    except ShortError:
        file.seek(0)
        return Header(path, read_all(file, min(size, LARGEST_HEADER)), size).read()
