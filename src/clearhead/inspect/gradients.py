"""Gradients with respect to every site of a forward pass, one block at a time.

Only the residual stream and the gradients at the block boundaries are stored. The gradients at the sites of a
block come from recomputing that block when one of them is read. Shapes: B sequences, T positions, C features,
V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.block_steps import apply_norm, norm_mean, norm_scale
from clearhead.inspect.gradient_steps import BlockGradients, ForwardPass, GradientSteps
from clearhead.inspect.sites import Site

ENTRY = ("embedding", "position")


class SiteGradients:
    """The gradients of one number, which is a function of the logits, with respect to every site.

    `by_logits` returns the number's gradient with respect to the logits, and `by_probabilities` that with respect
    to the probabilities, given their value: B T V → B T V. `known` has the gradients at the input of each block and
    after the last block, if a backward pass has computed them already.
    """

    def __init__(
        self,
        forward: ForwardPass,
        by_logits: Callable[[Tensor], Tensor],
        by_probabilities: Callable[[Tensor], Tensor] = torch.zeros_like,
        known: list[Tensor] | None = None,
    ) -> None:
        self.forward, self._by_logits, self._by_probabilities = forward, by_logits, by_probabilities
        self._boundaries: dict[int, Tensor] = {} if known is None else dict(enumerate(known))
        self._block: tuple[int, BlockGradients] | None = None  # the one computed last

    def read(self, site: Site) -> Tensor:
        """The gradient with respect to a site: B T …."""
        if site.block is None:
            return (self._entry if site.name in ENTRY else self._end)[site.name][1]
        if str(site) == f"block.{site.block}.output":
            return self.boundary(site.block + 1)
        return self.block(site.block).read(site)

    def value(self, site: Site) -> Tensor:
        """The value of a site, as it was recomputed for the gradients: B T …."""
        if site.block is None:
            return (self._entry if site.name in ENTRY else self._end)[site.name][0]
        return self.block(site.block).read(site, values=True)

    def block(self, i: int) -> BlockGradients:
        if self._block is None or self._block[0] != i:
            self._block = None  # free its memory first
            self._block = i, BlockGradients.of(self.forward, i, self.boundary(i + 1))
        return self._block[1]

    def boundary(self, i: int) -> Tensor:
        """The gradient with respect to the residual stream entering block i, or after the last block."""
        if i not in self._boundaries:
            last = len(self.forward.inputs)
            self._boundaries[i] = self._end["last"][1] if i == last else self._through_block(i)
        return self._boundaries[i]

    @torch.enable_grad()
    def _through_block(self, i: int) -> Tensor:
        forward, by_output = self.forward, self.boundary(i + 1)
        if forward.edits.of(i).made or forward.dropout:
            steps = GradientSteps(forward, i)
            with forward.randomness(i):
                x, output = steps.x, steps.output
        else:
            x = forward.inputs[i].detach().contiguous().requires_grad_()
            output = forward.block(i)(x, forward.masks[i], forward.rotations[i])
        (found,) = torch.autograd.grad(output, [x], by_output, allow_unused=True, materialize_grads=True)
        return found

    @cached_property
    @torch.enable_grad()
    def _end(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The value of each site after the last block, and the gradient with respect to it."""
        network, edits = self.forward.network, self.forward.edits
        norm = network.final_norm
        last = self.forward.last.detach().to(norm.gain.dtype).contiguous().requires_grad_()
        sites = {"last": last}

        def add(name: str, tensor: Tensor) -> Tensor:
            edited = edits.apply(Site(name), tensor)
            sites[name] = edited if edited.requires_grad else edited.detach().requires_grad_()
            return sites[name]

        mean = add("final.mean", norm_mean(last)) if norm.shift is not None else 0.0
        final = add("final", apply_norm(norm, last, mean, add("final.scale", norm_scale(norm, last))))
        logits = network.unembedding(final)
        if network.config.logit_cap is not None:
            logits = network.cap_logits(add("logits_raw", logits))
        logits = add("logits", logits)
        found = torch.autograd.grad(
            logits,
            list(sites.values()),
            self._by_logits(logits.detach()),
            allow_unused=True,
            materialize_grads=True,
        )
        ends = {
            name: (value.detach(), gradient)
            for (name, value), gradient in zip(sites.items(), found, strict=True)
        }
        probabilities = edits.apply(Site("probabilities"), logits.detach().softmax(-1))
        return {**ends, "probabilities": (probabilities, self._by_probabilities(probabilities))}

    @cached_property
    @torch.enable_grad()
    def _entry(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The token and position vectors, and the gradients with respect to them."""
        forward, by_input = self.forward, self.boundary(0)
        vectors = {
            "embedding": forward.network.token_vectors(forward.ids),
            "position": forward.network.position_vectors(forward.positions),
        }
        sites = {}
        for name, tensor in vectors.items():
            if tensor is not None:
                full = tensor.detach().expand(len(forward.ids), *tensor.shape[1:])
                sites[name] = forward.edits.apply(Site(name), full).detach().requires_grad_()
        with forward.randomness(None):
            x = F.dropout(sum(sites.values(), torch.zeros(())), forward.dropout)
        found = torch.autograd.grad(x, list(sites.values()), by_input.to(x.dtype))
        return {name: (site.detach(), g) for (name, site), g in zip(sites.items(), found, strict=True)}
