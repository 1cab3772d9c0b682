"""A model's weights as files that the page can load: one stream of bytes, cut into pieces, and an index.

The index lists each tensor's name in the network, shape, number type and first byte in the stream, and each
piece's file, length and SHA-256. Numbers are little-endian, row by row. A piece's file is named by its hash,
so that a browser's cache never mixes two publications.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.formats.network import own_tensors
from clearhead.language_model import LanguageModel
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import need_exact

NumberType = Literal["float32", "float16", "int8"]

WEIGHTS_FILE, CONFIG_FILE = "weights.json", "config.json"
FORMAT = 1
PIECE_SIZE = 8_000_000  # bytes; browsers and hosts cache files of this size
MOST_FLOAT16, MOST_INT8 = 65504, 127


def live_files(model: LanguageModel, numbers: NumberType = "float32") -> Iterator[tuple[str, bytes]]:
    """Yield the files of a model that the page can run, by name: config, tokenizer, weights and their index.

    `numbers` is the type of the matrices: float32, float16, or int8 with one scale per row. Norms, biases
    and positions stay float32.
    """
    network = model.transformer("publishing a live model")
    need_exact(network, "publishing a live model")
    yield CONFIG_FILE, _json(network.config.to_json())
    yield "tokenizer.json", model.tokenizer.to_json().encode()
    yield "tokenizer_config.json", _json(model.tokenizer.config)
    index, pieces = encode_weights(network, numbers)
    for piece in pieces:
        yield index["pieces"][-1]["file"], piece
    yield WEIGHTS_FILE, _json(index)


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()


def encode_weights(network: Transformer, numbers: NumberType) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Return the index and the pieces. The index is complete when all pieces have been taken."""
    index: dict[str, Any] = {"format": FORMAT, "numbers": numbers, "bytes": 0, "tensors": [], "pieces": []}
    return index, _encode_pieces(own_tensors(network), numbers, index)


def piece_file(sha256: str) -> str:
    return f"weights-{sha256[:16]}.bin"


def _encode_pieces(tensors: dict[str, Tensor], numbers: NumberType, index: dict[str, Any]) -> Iterator[bytes]:
    for piece in _cut(_encode_tensors(tensors, numbers, index), PIECE_SIZE):
        sha256 = hashlib.sha256(piece).hexdigest()
        index["pieces"].append({"file": piece_file(sha256), "bytes": len(piece), "sha256": sha256})
        yield piece


def _encode_tensors(
    tensors: dict[str, Tensor], numbers: NumberType, index: dict[str, Any]
) -> Iterator[bytes]:
    """Yield the numbers of all tensors, and add each tensor to the index."""
    for name, tensor in tensors.items():
        type_ = numbers if tensor.dim() == 2 and name != "position.weight" else "float32"
        entry = {"name": name, "shape": list(tensor.shape), "type": type_, "start": index["bytes"]}
        index["tensors"].append(entry)
        encoded, scales = _encode(name, tensor.detach().float().cpu(), type_)
        index["bytes"] += len(encoded)
        if scales:
            entry["scales"] = index["bytes"]
            index["bytes"] += len(scales)
        yield encoded
        yield scales


def _encode(name: str, tensor: Tensor, numbers: NumberType) -> tuple[bytes, bytes]:
    """Return the numbers and, for int8, the scales of the rows."""
    if numbers == "float32":
        return tensor.numpy().astype("<f4").tobytes(), b""
    if not tensor.isfinite().all():
        raise UserError(f"{name} contains numbers that are not finite: publish it as float32")
    if numbers == "float16":
        most = tensor.abs().max().item()
        if most > MOST_FLOAT16:
            raise UserError(
                f"{name} contains {most:g}, which is too large for float16: choose float32 or int8"
            )
        return tensor.numpy().astype("<f2").tobytes(), b""
    scales = tensor.abs().amax(1) / MOST_INT8
    scales[scales == 0] = 1
    codes = (tensor / scales[:, None]).round().to(torch.int8)
    return codes.numpy().tobytes(), scales.numpy().astype("<f4").tobytes()


def _cut(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in pieces of `size`; the last one may be shorter."""
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        full = len(rest) // size * size
        for start in range(0, full, size):
            yield bytes(rest[start : start + size])
        del rest[:full]
    if rest:
        yield bytes(rest)
