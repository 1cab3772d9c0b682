"""Dequantization: turns n blocks of bytes into n × block-size float32 numbers.

Each type packs a block of 32 or 256 numbers as small integers with a shared scale. The most common types are
implemented here with torch, several times as fast as gguf's NumPy code; a test compares them bit for bit. All
others use gguf.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor

PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

# Types by their number in a file: name, numbers per block, bytes per block.
KINDS = {kind.value: (kind.name, *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}


def unpack(blocks: Tensor, kind: str, out: Tensor) -> None:
    """Dequantize `blocks`, bytes [n, bytes per block], to `out`, float32 [n, numbers per block].

    Raises NotImplementedError for an unsupported type.
    """
    if kind in PLAIN:
        out.copy_(blocks.view(PLAIN[kind]))
    elif kind in UNPACKERS:
        UNPACKERS[kind](blocks, out)
    else:
        one_row = blocks.numpy().reshape(1, -1)  # gguf processes rows in small groups
        with np.errstate(all="ignore"):  # the caller checks for non-finite values
            numbers = dequantize(one_row, GGMLQuantizationType[kind])
        out.copy_(torch.from_numpy(numbers).view_as(out))


def _halves(blocks: Tensor, start: int) -> Tensor:
    """The float16 at byte `start` of each block, as float32 [n, 1]."""
    return blocks[:, start : start + 2].contiguous().view(torch.float16).to(torch.float32)


def _nibbles(packed: Tensor) -> Tensor:
    """Bytes [n, 16] to [n, 32]: first all low nibbles, then all high ones."""
    return torch.cat((packed & 15, packed >> 4), dim=1)


def _fifth_bits(packed: Tensor) -> Tensor:
    """Four bytes [n, 4] to their 32 bits [n, 32], each shifted left by four."""
    places = torch.arange(8, dtype=torch.uint8)
    return ((packed[:, :, None] >> places & 1) << 4).view(-1, 32)


def _q4_0(blocks: Tensor, out: Tensor) -> None:
    out.copy_(_nibbles(blocks[:, 2:])).sub_(8).mul_(_halves(blocks, 0))


def _q4_1(blocks: Tensor, out: Tensor) -> None:
    out.copy_(_nibbles(blocks[:, 4:])).mul_(_halves(blocks, 0)).add_(_halves(blocks, 2))


def _q5_0(blocks: Tensor, out: Tensor) -> None:
    numbers = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])
    out.copy_(numbers).sub_(16).mul_(_halves(blocks, 0))


def _q5_1(blocks: Tensor, out: Tensor) -> None:
    numbers = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])
    out.copy_(numbers).mul_(_halves(blocks, 0)).add_(_halves(blocks, 2))


def _q8_0(blocks: Tensor, out: Tensor) -> None:
    out.copy_(blocks[:, 2:].view(torch.int8)).mul_(_halves(blocks, 0))


def _scales_and_minima(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and minima of the eight parts of a Q4_K or Q5_K block, [n, 4, 2, 1] each: six-bit
    integers times one of the block's two scales.

    They occupy twelve bytes. Scales 0 to 3 and minima 0 to 3 are the low six bits of the first eight bytes.
    Scales and minima 4 to 7 have their low four bits in the last four bytes, and their two high bits in the
    high bits of the first eight.
    """
    scales, minima, both = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    all_scales = torch.cat((scales & 63, both & 15 | scales >> 2 & 48), dim=1)
    all_minima = torch.cat((minima & 63, both >> 4 | minima >> 2 & 48), dim=1)
    return (
        (_halves(blocks, 0) * all_scales).view(-1, 4, 2, 1),
        (_halves(blocks, 2) * all_minima).view(-1, 4, 2, 1),
    )


def _q4_k(blocks: Tensor, out: Tensor) -> None:
    scales, minima = _scales_and_minima(blocks)
    packed = blocks[:, 16:].view(-1, 4, 32)
    numbers = out.view(-1, 4, 2, 32)
    numbers[:, :, 0] = packed & 15
    numbers[:, :, 1] = packed >> 4
    numbers.mul_(scales).sub_(minima)


def _q5_k(blocks: Tensor, out: Tensor) -> None:
    scales, minima = _scales_and_minima(blocks)
    fifth = blocks[:, 16:48]  # bit i of byte j belongs to weight j of sub-block i
    packed = blocks[:, 48:].view(-1, 4, 32)
    numbers = out.view(-1, 4, 2, 32)
    for pair in range(4):
        numbers[:, pair, 0] = packed[:, pair] & 15 | (fifth >> 2 * pair & 1) << 4
        numbers[:, pair, 1] = packed[:, pair] >> 4 | (fifth >> 2 * pair + 1 & 1) << 4
    numbers.mul_(scales).sub_(minima)


def _q6_k(blocks: Tensor, out: Tensor) -> None:
    low = blocks[:, :128].view(-1, 2, 2, 32)
    high = blocks[:, 128:192].view(-1, 2, 32)
    scales = _halves(blocks, 208) * blocks[:, 192:208].view(torch.int8)
    numbers = out.view(-1, 2, 4, 32)
    for quarter in range(4):
        four = low[:, :, quarter % 2] >> 4 * (quarter // 2) & 15
        numbers[:, :, quarter] = four | (high >> 2 * quarter & 3) << 4
    numbers.sub_(32)
    out.view(-1, 16, 16).mul_(scales[:, :, None])


UNPACKERS: dict[str, Callable[[Tensor, Tensor], None]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
