"""What the loss of each target adds to one number of a weight's gradient, by forward-mode differentiation.

The derivative of all losses with respect to a single number takes one forward pass. Shapes: B sequences, T positions.
"""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from clearhead.errors import UserError
from clearhead.inspect.gradient_steps import ForwardPass
from clearhead.inspect.weights import view_weight
from clearhead.lessons.gradients import find_parameter
from clearhead.lessons.recorder import mirror
from clearhead.text.tokens import IGNORED


@torch.no_grad()
def target_parts(
    forward: ForwardPass,
    documents: Tensor | None,
    targets: Tensor,
    weight: Tensor,
    name: str,
    at: tuple[int, ...],
) -> Tensor:
    """The derivative of each position's loss, times `weight`, with respect to one number: B T."""
    network = forward.network
    parameter = find_parameter(network, name)
    if parameter is None:
        raise UserError(f"{name} is a product of two weights: ask for the tokens of one of them")
    direction = torch.zeros_like(parameter)
    view_weight(mirror(network, {parameter: direction}), name)[at] = 1.0  # a view of `direction`
    (path,) = (path for path, each in network.named_parameters() if each is parameter)
    kwargs = {} if documents is None else {"documents": documents}

    def losses(value: Tensor) -> Tensor:
        logits = functional_call(network, {path: value}, (forward.ids,), kwargs)
        flat = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, 1)
        found = F.cross_entropy(flat, targets.flatten(), ignore_index=IGNORED, reduction="none")
        return found.view_as(targets) * weight

    network.train(bool(forward.dropout))
    try:
        # The fused kernel has no forward-mode derivative.
        with forward.randomness(None), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch, for its own code
            tangent: Tensor = jvp(losses, (parameter.detach(),), (direction,))[1]
    finally:
        network.eval()
    return tangent
