"""Low-rank adapters (LoRA): a frozen matrix W learns by W + s · B A, where A and B are thin.

C features in, D features out, R the rank: W is D C, A is R C, B is D R. B begins at zero, so that the network
begins as it was; s = α / R with α = 2 R. While training, the product is never written down; otherwise the
layer is the plain one that it stands for, with the sum as its `weight`, so that whoever looks on, writes or
saves sees one network without adapters.
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


class Adapted(nn.Module):
    """A linear layer whose weights stay, with an adapter beside them."""

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
        """What the layer now has in effect. Kept until the adapter changes or training goes on."""
        state = (self.A._version, self.B._version)
        if self._merged is None or self._merged[0] != state or self._merged[1].device != self.A.device:
            with torch.inference_mode(False), torch.no_grad():
                self._merged = state, torch.addmm(self.frozen, self.B, self.A, alpha=SCALE)
        return self._merged[1]

    def train(self, mode: bool = True) -> Adapted:
        if mode:
            self._merged = None
        return super().train(mode)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """What is saved is the plain layer."""
        for name, tensor in (("weight", self.weight), ("bias", self.bias)):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()


def adapt(network: Transformer, rank: int) -> Transformer:
    """Freeze the network and give every matrix inside its blocks an adapter, which alone is to learn."""
    network.requires_grad_(False)
    for part, name, layer in _layers(network):
        setattr(part, name, Adapted(layer, rank).train(network.training))
    return network


def merge(network: Transformer) -> Transformer:
    """The plain network again, with all that the adapters learned. One without adapters stays as it is."""
    merged = [(part, name, layer) for part, name, layer in _layers(network) if isinstance(layer, Adapted)]
    for part, name, layer in merged:
        with torch.device("meta"):
            linear = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None)
        linear.weight, linear.bias = nn.Parameter(layer.weight), layer.bias
        setattr(part, name, linear.train(network.training))
    if merged:
        network.requires_grad_(True)
    return network


def count_parameters(network: Network) -> int:
    """How many numbers training may change."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def _layers(network: Transformer) -> list[tuple[nn.Module, str, Any]]:
    """Each part of a block that has matrices, what it calls them, and the layers themselves."""
    found: list[tuple[nn.Module, str, Any]] = []
    for block in network.blocks:
        assert isinstance(block, Block)
        for part in (block.attention, block.feedforward):
            for name, layer in part.named_children():
                if isinstance(layer, nn.Linear | Adapted):
                    found.append((part, name, layer))
    return found
