"""Several linear projections of the same vectors in one matrix product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def project_together(x: Tensor, parts: Sequence[nn.Module], merged: bool) -> Sequence[Tensor]:
    """Apply each projection to x. `merged` concatenates the weights into one product.

    One product is faster for many vectors; for a few, concatenating costs more than it saves.
    """
    linears = [part for part in parts if type(part) is nn.Linear]
    if not merged or len(linears) < len(parts):  # LoRA adapters define their own forward
        return [part(x) for part in parts]
    weight = torch.cat([part.weight for part in linears])
    bias = None if linears[0].bias is None else torch.cat([part.bias for part in linears])
    return torch.split(F.linear(x, weight, bias), [part.out_features for part in linears], dim=-1)
