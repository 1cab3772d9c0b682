"""The steps of one block as a graph in which the gradient at every site can be computed.

Shapes: B sequences, T positions, H heads, C features of the residual stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.inspect.block_steps import BlockSteps, apply_norm
from clearhead.inspect.edits import Edits
from clearhead.inspect.sites import Site, block_names, head_names
from clearhead.model.block import Block
from clearhead.model.mask import AttentionMask
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation
from clearhead.model.transformer import Transformer


@dataclass(frozen=True)
class ForwardPass:
    """The stored part of a forward pass: the residual stream before each block and after the last, B T C each.

    With dropout, `random_states` has the state of the random generator before the embedding and before each
    block, so that recomputing a block drops the same features.
    """

    network: Transformer
    ids: Tensor  # B T
    positions: Tensor
    masks: list[AttentionMask]
    rotations: list[Rotation | None]
    inputs: list[Tensor]
    last: Tensor
    edits: Edits = field(default_factory=Edits)
    dropout: float = 0.0
    random_states: list[Tensor] = field(default_factory=list)

    def block(self, i: int) -> Block:
        block = self.network.blocks[i]
        assert isinstance(block, Block)
        return block

    @contextmanager
    def randomness(self, i: int | None) -> Iterator[None]:
        """Restore the random state before block i, or before the embedding, while the context is active."""
        if not self.dropout:
            yield
            return
        state, device = self.random_states[0 if i is None else i + 1], self.ids.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            set_random_state(state, device)
            yield


def random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_random_state(state: Tensor, device: torch.device) -> None:
    torch.cuda.set_rng_state(state, device) if device.type == "cuda" else torch.set_rng_state(state)


class GradientSteps(BlockSteps):
    """The steps of a block, where every site is part of the graph, even one with an edited, constant value."""

    def __init__(self, forward: ForwardPass, i: int) -> None:
        dtype = forward.network.embedding.weight.dtype  # under autocast, the stream may be bfloat16
        x = forward.inputs[i].detach().to(dtype).contiguous().requires_grad_()
        mask, rotation, edits = forward.masks[i], forward.rotations[i], forward.edits.of(i)
        super().__init__(forward.block(i), i, forward.network.config, x, mask, rotation, edits)
        self.p_dropout = forward.dropout

    def _edited(self, name: str, tensor: Tensor) -> Tensor:
        return _differentiable(super()._edited(name, tensor))

    def _edited_heads(self, name: str, tensor: Tensor) -> Tensor:
        return _differentiable(super()._edited_heads(name, tensor))

    def _norm(self, norm: nn.Module, name: str, x: Tensor) -> Tensor:
        """The norm by its formula, so that its mean and scale are part of the graph."""
        if not isinstance(norm, Norm):
            return x.view_as(x)  # a separate tensor, with its own gradient
        mean = getattr(self, f"{name}_mean") if norm.shift is not None else 0.0
        return apply_norm(norm, x, mean, getattr(self, f"{name}_scale"))

    @cached_property
    def middle(self) -> Tensor:
        added = self.attention_normed if self.config.post_norm else self.attention
        return self._edited("middle", F.dropout(added, self.p_dropout) + self.input)

    @cached_property
    def output(self) -> Tensor:
        middle = self.middle  # its dropout comes first
        added = self.feedforward_normed if self.config.post_norm else self.feedforward
        return self._edited("output", F.dropout(added, self.p_dropout) + middle)


@dataclass(frozen=True)
class BlockGradients:
    """The values of all sites of a block, and the gradients with respect to them: B T …, or B H T … for heads."""

    group: int  # heads that share a key-value head
    values: dict[str, Tensor]
    gradients: dict[str, Tensor]

    @classmethod
    @torch.enable_grad()
    def of(cls, forward: ForwardPass, i: int, by_output: Tensor) -> BlockGradients:
        """Recompute block i and propagate the gradient at its output, B T C, back to every site."""
        config, steps = forward.network.config, GradientSteps(forward, i)
        with forward.randomness(i):
            output = steps.output
        tensors = {"x": steps.x, "input": steps.input}
        for name in (*block_names(config), *(f"head.{name}" for name in head_names(config))):
            tensors[name] = steps.read(_site(name, i))
        found = torch.autograd.grad(
            output,
            list(tensors.values()),
            by_output.to(output.dtype),
            allow_unused=True,
            materialize_grads=True,
        )
        values = {name: tensor.detach() for name, tensor in tensors.items()}
        return cls(steps.group, values, dict(zip(tensors, found, strict=True)))

    def read(self, site: Site, values: bool = False) -> Tensor:
        """The gradient at a site, or its value: B T …."""
        found = self.values if values else self.gradients
        if site.head is not None:
            return found[f"head.{site.name}"][:, site.head]
        if site.kv_head is None:
            return found[site.name]
        first = self.group * site.kv_head
        shared = found[f"head.{site.name}"][:, first : first + self.group]
        return shared[:, 0] if values else shared.sum(1)


def _site(name: str, block: int) -> Site:
    in_head = name.startswith("head.")
    return Site(name.removeprefix("head."), block, head=0 if in_head else None)


def _differentiable(tensor: Tensor) -> Tensor:
    return tensor if tensor.requires_grad else tensor.detach().requires_grad_()
