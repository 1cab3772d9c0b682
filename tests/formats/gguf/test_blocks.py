"""Dequantize random blocks of every type and compare with gguf's own values, bit for bit."""

import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from clearhead.formats.gguf.blocks import UNPACKERS, unpack

UNREADABLE = {"Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64", "Q1_0"}


def random_blocks(kind, n, seed=0):
    _, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    return np.random.default_rng(seed).integers(0, 256, (n, n_bytes), dtype=np.uint8)


def reference(blocks, kind):
    with np.errstate(all="ignore"):
        return dequantize(blocks, GGMLQuantizationType[kind]).astype(np.float32)


@pytest.mark.parametrize("kind", sorted({kind.name for kind in GGMLQuantizationType} - UNREADABLE))
def test_dequantized_values_match_gguf_bit_for_bit(kind):
    blocks = random_blocks(kind, 300)
    expected = reference(blocks, kind)
    n_block, _ = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    out = torch.empty(300, n_block)
    unpack(torch.from_numpy(blocks), kind, out)
    finite = np.isfinite(expected)  # NaN has many bit patterns
    assert finite.mean() > 0.5
    assert np.array_equal(np.isfinite(out.numpy()), finite)
    assert np.array_equal(out.numpy()[finite].view(np.uint32), expected[finite].view(np.uint32))


@pytest.mark.parametrize("kind", sorted(UNREADABLE))
def test_unsupported_types_raise(kind):
    blocks = torch.from_numpy(random_blocks(kind, 1))
    with pytest.raises(NotImplementedError):
        unpack(blocks, kind, torch.empty(1, GGML_QUANT_SIZES[GGMLQuantizationType[kind]][0]))


def test_handwritten_block_is_dequantized():
    # A float16 scale of ½, then the nibbles: low nibbles are values 0 to 15, high nibbles 16 to 31.
    block = np.concatenate((np.array([0.5], np.float16).view(np.uint8), np.full(16, 0x9F, np.uint8)))
    out = torch.empty(1, 32)
    unpack(torch.from_numpy(block[None]), "Q4_0", out)
    assert out[0].tolist() == [0.5 * (15 - 8)] * 16 + [0.5 * (9 - 8)] * 16


def test_common_types_have_our_own_unpackers():
    assert {"Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"} <= UNPACKERS.keys()
