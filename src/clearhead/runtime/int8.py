"""The int8 format of quantized matrices: integers with one scale per group of a row.

Shapes: K input features, N output features, G groups per row.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

GROUP = 64  # numbers that share a scale
MOST = 127  # largest absolute value of an integer


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize N K weights to N K' codes (K' a multiple of the group size) and N G scales."""
    padded = F.pad(weight, (0, -weight.shape[1] % GROUP)).view(len(weight), -1, GROUP)
    scales = padded.abs().amax(dim=-1) / MOST
    codes = (padded / scales.clamp(min=1e-30)[:, :, None]).round().to(torch.int8)
    return codes.flatten(1).contiguous(), scales.contiguous()
