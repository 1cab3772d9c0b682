"""Record the forward and backward pass of a training step at the block boundaries."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from clearhead.inspect.gradient_steps import ForwardPass, random_state
from clearhead.inspect.gradients import SiteGradients
from clearhead.model.block import Block
from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.position import Rotation, document_positions
from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED
from clearhead.training.lora import LoRALinear, merge
from clearhead.training.objective import cross_entropy


@dataclass(frozen=True)
class Loss:
    """The loss of some rows of a batch: the sum of -ln P(target), times `weight`."""

    targets: Tensor  # B T
    weight: Tensor

    def by_logits(self, logits: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            loss = cross_entropy(leaf, self.targets, "sum") * self.weight
            (found,) = torch.autograd.grad(loss, [leaf])
        return found

    def by_probabilities(self, probabilities: Tensor) -> Tensor:
        """-1/P at each target, times the weight."""
        index = self.targets.clamp(min=0)[..., None]
        counted = (self.targets != IGNORED)[..., None]
        by_target = torch.where(counted, -self.weight / probabilities.gather(-1, index), 0.0)
        return torch.zeros_like(probabilities).scatter_(-1, index, by_target.to(probabilities.dtype))


class Recorder(nn.Module):
    """Stands for the network in a training step, and keeps the residual stream of each part of the batch.

    After the backward pass, `gradients` also has the gradients at the block boundaries.
    """

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network
        self.passes: list[ForwardPass] = []

    def forward(self, inputs: Tensor, documents: Tensor | None = None) -> Tensor:
        network, device = self.network, inputs.device
        dropout = network.config.dropout if network.training else 0.0
        states = [random_state(device)] if dropout else []
        stream: list[Tensor] = []
        masks: list[AttentionMask] = []
        rotations: list[Rotation | None] = []

        def run_block(
            i: int,
            block: Block,
            x: Tensor,
            mask: AttentionMask,
            rotation: Rotation | None,
            cache: BlockKVCache | None,
        ) -> Tensor:
            x = x if x.requires_grad else x.detach().requires_grad_()  # the embedding is frozen
            stream.append(x)
            masks.append(mask)
            rotations.append(rotation)
            if dropout:
                states.append(random_state(device))
            h: Tensor = block(x, mask, rotation, cache)
            if i == network.config.n_block - 1:
                stream.append(h)
            return h

        final = network.hidden_states(inputs, documents=documents, run_block=run_block)
        for x in stream:
            x.retain_grad()
        positions = network.positions(inputs) if documents is None else document_positions(documents)
        self.passes.append(
            ForwardPass(
                network,
                inputs,
                positions,
                masks,
                rotations,
                stream[:-1],
                stream[-1],
                dropout=dropout,
                random_states=states,
            )
        )
        return network.unembedding(final)

    def gradients(self, targets: Tensor, weight: Tensor) -> list[SiteGradients]:
        """The gradients at the sites of each part of the batch, given its targets."""
        plain, found = without_adapters(self.network), []
        for each, own in zip(self.passes, targets.chunk(len(self.passes)), strict=True):
            loss, stream = Loss(own, weight), [*each.inputs, each.last]
            boundaries = [_gradient(x) for x in stream]
            detached = [x.detach() for x in stream]
            forward = replace(each, network=plain, inputs=detached[:-1], last=detached[-1])
            found.append(SiteGradients(forward, loss.by_logits, loss.by_probabilities, boundaries))
        self.passes.clear()
        return found


def _gradient(x: Tensor) -> Tensor:
    return torch.zeros_like(x) if x.grad is None else x.grad


def mirror(network: Transformer, values: dict[nn.Parameter, Tensor]) -> Transformer:
    """A network of the same structure with these values as parameters; the other parameters are shared."""
    memo: dict[int, object] = {id(parameter): parameter for parameter in network.parameters()}
    for parameter, value in values.items():
        memo[id(parameter)] = nn.Parameter(value, parameter.requires_grad)
    return deepcopy(network, memo)


def has_adapters(network: Transformer) -> bool:
    return any(isinstance(module, LoRALinear) for module in network.modules())


def without_adapters(network: Transformer) -> Transformer:
    """The network itself, or a copy with its adapters merged into the matrices."""
    return merge(mirror(network, own_parameters(network))) if has_adapters(network) else network


def own_parameters(network: Transformer) -> dict[nn.Parameter, Tensor]:
    """The parameters' values, for a mirror that shares them but not their gradients and settings."""
    return {parameter: parameter.detach() for parameter in network.parameters()}
