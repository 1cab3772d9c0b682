"""Matrices in eight bits: a quarter of the memory to be read for each word, which is what writing waits for.

A matrix is whole numbers from -127 to 127, with a scale for each 64 of a row; a vector that it is multiplied
with is rounded the same way. So two whole numbers are multiplied, which processors do sixteen at a time.

Shapes: B vectors, K features in, N features out, G groups of a row.
"""

from __future__ import annotations

import importlib.util

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.model.transformer import Transformer

GROUP = 64
MOST = 127


class QuantizedLinear(nn.Module):
    """A linear layer whose matrix is held in eight bits."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        codes, scales = round_rows(linear.weight.detach())
        self.bias = linear.bias
        bias = torch.zeros(0) if linear.bias is None else linear.bias.detach()
        self.matrix = codes.numpy(), scales.numpy(), bias.numpy()

    @property
    def weight(self) -> Tensor:
        """The matrix that it stands for, N K."""
        codes, scales = (torch.from_numpy(each) for each in self.matrix[:2])
        groups = codes.view(self.out_features, -1, GROUP) * scales[:, :, None]
        return groups.flatten(1)[:, : self.in_features]

    def forward(self, x: Tensor) -> Tensor:
        from clearhead.runtime.quantized_kernel import Turn, multiply

        vectors = x.reshape(-1, self.in_features).contiguous()
        out = vectors.new_empty(len(vectors), self.out_features)
        with Turn():
            multiply(self.matrix, vectors.numpy(), out.numpy())
        return out.view(*x.shape[:-1], self.out_features)


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """N K numbers as N K' codes (K' a multiple of the group) and N G scales."""
    padded = F.pad(weight, (0, -weight.shape[1] % GROUP)).view(len(weight), -1, GROUP)
    scales = padded.abs().amax(dim=-1) / MOST
    codes = (padded / scales.clamp(min=1e-30)[:, :, None]).round().to(torch.int8)
    return codes.flatten(1).contiguous(), scales.contiguous()


def quantize(network: Transformer) -> Transformer:
    """Hold every matrix of the blocks and the unembedding in eight bits; the embedding stays as it is."""
    if network.embedding.weight.device.type != "cpu":
        raise UserError("quantize is for the CPU, where memory is what writing waits for: add device cpu")
    if network.embedding.weight.dtype != torch.float32:
        raise UserError("quantize goes with dtype float32: what is not in eight bits stays exact")
    if importlib.util.find_spec("numba") is None:
        raise UserError("quantize needs numba, which is not installed: pip install 'clearhead[numba]'")
    assert not is_quantized(network), "it is in eight bits already"
    for module in list(network.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Linear:
                setattr(module, name, QuantizedLinear(part))
    return network.requires_grad_(False)


def is_quantized(network: nn.Module) -> bool:
    return any(isinstance(module, QuantizedLinear) for module in network.modules())


def need_exact(network: nn.Module, what: str) -> None:
    """Refuse a network in eight bits what only makes sense with the weights themselves."""
    if is_quantized(network):
        raise UserError(f"{what} wants the weights as they are: load the model without quantize")
