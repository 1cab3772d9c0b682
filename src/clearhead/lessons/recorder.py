"""Record the forward and backward passes of a training step at the block boundaries."""

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
from clearhead.training.distillation import distillation_loss
from clearhead.training.lora import LoRALinear, merge
from clearhead.training.objective import cross_entropy


@dataclass(frozen=True)
class Loss:
    """The loss of some rows of a batch: the sum of -ln P(target), times `weight`.

    That of a student is in part the cross-entropy with its teachers' predictions.
    """

    targets: Tensor  # B T
    weight: Tensor
    predicted: Tensor | None = None  # by teachers: B T V
    true_share: float = 1.0

    def by_logits(self, logits: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            if self.predicted is None:
                loss = cross_entropy(leaf, self.targets, "sum")
            else:
                loss = distillation_loss(leaf, self.targets, self.predicted, self.true_share)
            (found,) = torch.autograd.grad(loss * self.weight, [leaf])
        return found

    def by_probabilities(self, probabilities: Tensor) -> Tensor:
        """-y/P, times the weight: y is 1 at the target or, for a student, mixed with its teachers' predictions."""
        index = self.targets.clamp(min=0)[..., None]
        counted = (self.targets != IGNORED)[..., None]
        by_target = torch.where(counted, -self.weight / probabilities.gather(-1, index), 0.0)
        found = torch.zeros_like(probabilities).scatter_(-1, index, by_target.to(probabilities.dtype))
        if self.predicted is None:
            return found
        soft = torch.where(counted, -self.weight * self.predicted.float() / probabilities, 0.0)
        return self.true_share * found + (1 - self.true_share) * soft.to(found.dtype)


class Recorder(nn.Module):
    """Stands in for the network in a training step, and keeps the residual stream of each part of the batch.

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
        return network.unembed(final)

    def gradients(
        self, targets: Tensor, weight: Tensor, predicted: Tensor | None = None, true_share: float = 1.0
    ) -> list[SiteGradients]:
        """The gradients at the sites of each part of the batch, given its targets."""
        plain, parts, found = without_adapters(self.network), len(self.passes), []
        taught = [None] * parts if predicted is None else predicted.chunk(parts)
        for each, own, by_teachers in zip(self.passes, targets.chunk(parts), taught, strict=True):
            loss, stream = Loss(own, weight, by_teachers, true_share), [*each.inputs, each.last]
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
