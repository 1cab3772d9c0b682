"""int8 quantization: a quarter of the memory traffic per token, which is what bounds decoding on a CPU.

A matrix is stored as integers from -127 to 127 with one scale per group of 64 in a row. The vectors it is
multiplied by are quantized the same way, so that the products are integer products, which SIMD units
compute sixteen at a time.

Shapes: B vectors, K input features, N output features, G groups per row.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.model.transformer import Transformer
from clearhead.runtime.int8 import GROUP, quantize_rows


class QuantizedLinear(nn.Module):
    """A linear layer with an int8 weight matrix."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        codes, scales = quantize_rows(linear.weight.detach())
        self.bias = linear.bias
        bias = torch.zeros(0) if linear.bias is None else linear.bias.detach()
        self.matrix = codes.numpy(), scales.numpy(), bias.numpy()

    @property
    def weight(self) -> Tensor:
        """The dequantized matrix, N K."""
        codes, scales = (torch.from_numpy(each) for each in self.matrix[:2])
        groups = codes.view(self.out_features, -1, GROUP) * scales[:, :, None]
        return groups.flatten(1)[:, : self.in_features]

    def forward(self, x: Tensor) -> Tensor:
        from clearhead.runtime.quantized_kernel import KernelLock, multiply

        vectors = x.reshape(-1, self.in_features).contiguous()
        out = vectors.new_empty(len(vectors), self.out_features)
        with KernelLock():
            multiply(self.matrix, vectors.numpy(), out.numpy())
        return out.view(*x.shape[:-1], self.out_features)


def quantize(network: Transformer) -> Transformer:
    """Quantize all matrices of the blocks and the unembedding in place; the embedding stays as it is."""
    if network.embedding.weight.device.type != "cpu":
        raise UserError(
            "`quantize` works on the CPU only, where decoding is memory-bound: set `device` to cpu"
        )
    if network.embedding.weight.dtype != torch.float32:
        raise UserError("`quantize` requires dtype float32, which everything but the matrices keeps")
    require("numba", "quantize")
    assert not is_quantized(network), "the network is already quantized"
    for module in list(network.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Linear:
                setattr(module, name, QuantizedLinear(part))
    return network.requires_grad_(False)


def is_quantized(network: nn.Module) -> bool:
    return any(isinstance(module, QuantizedLinear) for module in network.modules())


def need_exact(network: nn.Module, what: str) -> None:
    """Raise an error if the network is quantized: `what` needs the original weights."""
    if is_quantized(network):
        raise UserError(f"{what} needs the original weights: load the model without `quantize`")
