"""Low-rank adapters (LoRA): a frozen matrix W is fine-tuned as W + s · B A with thin matrices A and B.

C input features, D output features, rank R: W is D C, A is R C, B is D R. B starts at zero, so that training
starts from the original network; s = α / R with α = 2 R. In training, the product B A is never materialized.
Otherwise the layer acts as a plain linear layer with the merged matrix as its `weight`, so that tracing,
generating and saving see one network without adapters.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.model.block import Block
from clearhead.model.transformer import Transformer
from clearhead.networks import Network

SCALE = 2.0  # α / R


class LoRALinear(nn.Module):
    """A frozen linear layer with an adapter."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.frozen, self.bias = linear.weight, linear.bias
        W = linear.weight
        self.A = nn.Parameter(W.new_empty(rank, linear.in_features).normal_(std=linear.in_features**-0.5))
        self.B = nn.Parameter(W.new_zeros(linear.out_features, rank))
        self._merged: tuple[tuple[int, int], Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return F.linear(x, self.weight, self.bias)
        return F.linear(x, self.frozen, self.bias) + SCALE * F.linear(F.linear(x, self.A), self.B)

    @property
    def weight(self) -> Tensor:
        """The merged matrix, cached until the adapter changes or training continues.

        It has the precision of the frozen one, even where autocast would compute the product in bfloat16.
        """
        state = (self.A._version, self.B._version)
        if self._merged is None or self._merged[0] != state or self._merged[1].device != self.A.device:
            exact = torch.autocast(self.A.device.type, enabled=False)
            with torch.inference_mode(False), torch.no_grad(), exact:
                self._merged = state, torch.addmm(self.frozen, self.B, self.A, alpha=SCALE)
        return self._merged[1]

    def train(self, mode: bool = True) -> LoRALinear:
        if mode:
            self._merged = None
        return super().train(mode)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Save the merged, plain layer."""
        for name, tensor in (("weight", self.weight), ("bias", self.bias)):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()


def adapt(network: Transformer, rank: int) -> Transformer:
    """Freeze the network and add a trainable adapter to every matrix in its blocks."""
    network.requires_grad_(False)
    for part, name, layer in _layers(network):
        setattr(part, name, LoRALinear(layer, rank).train(network.training))
    return network


def merge(network: Transformer) -> Transformer:
    """Merge the adapters into plain linear layers. A network without adapters is returned unchanged."""
    merged = [(part, name, layer) for part, name, layer in _layers(network) if isinstance(layer, LoRALinear)]
    for part, name, layer in merged:
        with torch.device("meta"):
            linear = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None)
        linear.weight, linear.bias = nn.Parameter(layer.weight), layer.bias
        setattr(part, name, linear.train(network.training))
    if merged:
        network.requires_grad_(True)
    return network


def count_parameters(network: Network) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def _layers(network: Transformer) -> list[tuple[nn.Module, str, Any]]:
    """(module, attribute name, layer) for each linear layer in the blocks."""
    found: list[tuple[nn.Module, str, Any]] = []
    for block in network.blocks:
        assert isinstance(block, Block)
        for part in (block.attention, block.feedforward):
            for name, layer in part.named_children():
                if isinstance(layer, nn.Linear | LoRALinear):
                    found.append((part, name, layer))
    return found
