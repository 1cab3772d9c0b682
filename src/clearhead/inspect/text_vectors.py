"""A vector for a whole text: the network's output before the logits, at the last token or averaged over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.model.transformer import Transformer
from clearhead.networks import Network

Pooling = Literal["mean", "last"]


@torch.inference_mode()
def text_vectors(
    network: Network,
    sequences: Sequence[Sequence[int]],
    pooling: Pooling = "mean",
    watch: Callable[[], object] = lambda: None,
) -> Tensor:
    """The vector of each sequence, scaled to length 1: N C.

    It is the mean of `final` (in a recurrent network, the last block's output) over all tokens, or its value at the
    last token. `watch` is called before each sequence, and may raise an exception to stop.
    """
    if not isinstance(network, Transformer | Recurrent):
        kind = network.config.kind
        raise UserError(
            f"text vectors require a transformer or a recurrent network; this model is of kind {kind}"
        )
    device = network.embedding.weight.device
    rows = []
    for ids in sequences:
        watch()
        final = network.hidden_states(torch.tensor([list(ids)], device=device))[0].float()
        rows.append(final.mean(0) if pooling == "mean" else final[-1])
    return normalize(torch.stack(rows), dim=-1).cpu()
