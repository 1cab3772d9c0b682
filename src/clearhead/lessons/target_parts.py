"""What the loss of each target adds to one number of a weight's gradient, by forward-mode differentiation.

The derivative of all losses with respect to a single number takes one forward pass. Shapes: B sequences, T positions.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.inspect.gradient_steps import ForwardPass
from clearhead.lessons.gradients import find_parameter, part_of, refuse_product
from clearhead.lessons.recorder import Loss
from clearhead.training.distillation import position_losses


@torch.no_grad()
def target_parts(
    forward: ForwardPass,
    documents: Tensor | None,
    loss: Loss,
    name: str,
    at: tuple[int, ...],
) -> Tensor:
    """The derivative of each position's part of the loss with respect to one number: B T."""
    network = forward.network
    refuse_product(name, "parts by target")
    parameter = find_parameter(network, name)
    assert parameter is not None
    direction = torch.zeros_like(parameter)
    part_of(network, parameter, name, direction)[at] = 1.0  # a view of `direction`
    (path,) = (path for path, each in network.named_parameters() if each is parameter)
    kwargs = {} if documents is None else {"documents": documents}

    def losses(value: Tensor) -> Tensor:
        logits = functional_call(network, {path: value}, (forward.ids,), kwargs)
        return position_losses(logits, loss.targets, loss.predicted, loss.true_share) * loss.weight

    network.train(bool(forward.dropout))
    try:
        # The fused kernel has no forward-mode derivative.
        with forward.randomness(None), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # raised by torch for its own code
            tangent: Tensor = jvp(losses, (parameter.detach(),), (direction,))[1]
    finally:
        network.eval()
    return tangent
