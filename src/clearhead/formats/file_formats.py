"""The kinds of single files that hold a model: how each is recognized, described and loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from clearhead.errors import UserError
from clearhead.files import open_regular, read_all
from clearhead.formats import arpa, llama2c, nanogpt
from clearhead.formats.saved import Saved
from clearhead.networks import SingleConfig

GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True)
class FileFormat:
    name: str
    matches: Callable[[Path], bool]
    read_config: Callable[[Path], SingleConfig]
    load: Callable[[Path, torch.dtype], Saved]


# Besides GGUF, whose library is imported only when needed.
FORMATS = (
    FileFormat("arpa", arpa.is_arpa, arpa.read_config, lambda path, _: arpa.load(path)),
    FileFormat("nanogpt", nanogpt.is_nanogpt, nanogpt.read_config, nanogpt.load),
    FileFormat("llama2.c", llama2c.is_llama2c, llama2c.read_config, llama2c.load),
)


def find_format(path: Path) -> FileFormat | None:
    """The format of a file other than GGUF, if it is one of these."""
    if path.suffix == ".gguf":
        return None
    return next((each for each in FORMATS if each.matches(path)), None)


def is_gguf(path: Path) -> bool:
    if path.suffix == ".gguf" or not path.is_file():
        return True  # the reader reports any error
    return read_start(path, len(GGUF_MAGIC)) == GGUF_MAGIC


def read_start(path: Path, n: int) -> bytes:
    """The first bytes of a file."""
    try:
        with open_regular(path) as file:
            return read_all(file, n)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
