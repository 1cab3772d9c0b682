"""Every kind's numbers against gguf's own, bit for bit, on random blocks."""

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
def test_numbers_are_ggufs_bit_for_bit(kind):
    blocks = random_blocks(kind, 300)
    expected = reference(blocks, kind)
    n_block, _ = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    out = torch.empty(300, n_block)
    unpack(torch.from_numpy(blocks), kind, out)
    finite = np.isfinite(expected)  # a NaN has many spellings
    assert finite.mean() > 0.5
    assert np.array_equal(np.isfinite(out.numpy()), finite)
    assert np.array_equal(out.numpy()[finite].view(np.uint32), expected[finite].view(np.uint32))


@pytest.mark.parametrize("kind", sorted(UNREADABLE))
def test_other_kinds_are_not_guessed_at(kind):
    blocks = torch.from_numpy(random_blocks(kind, 1))
    with pytest.raises(NotImplementedError):
        unpack(blocks, kind, torch.empty(1, GGML_QUANT_SIZES[GGMLQuantizationType[kind]][0]))


def test_a_block_by_hand():
    # The scale ½ as a float16, then the nibbles: low halves are numbers 0 to 15, high halves 16 to 31.
    block = np.concatenate((np.array([0.5], np.float16).view(np.uint8), np.full(16, 0x9F, np.uint8)))
    out = torch.empty(1, 32)
    unpack(torch.from_numpy(block[None]), "Q4_0", out)
    assert out[0].tolist() == [0.5 * (15 - 8)] * 16 + [0.5 * (9 - 8)] * 16


def test_the_commonest_kinds_are_ours():
    assert {"Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"} <= UNPACKERS.keys()
