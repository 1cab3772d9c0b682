"""The training objective: cross-entropy of the next token, or of masked tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.networks import Network, logits_in_parts
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.batches import Batch
from clearhead.text.tokens import IGNORED


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Mean (or sum) of -ln P(target) over positions with a target, in nats: B T V, B T → scalar."""
    flat = (logits if logits.dtype == torch.float64 else logits.float()).flatten(0, 1)
    return F.cross_entropy(flat, targets.flatten(), ignore_index=IGNORED, reduction=reduction)


def count_targets(targets: np.ndarray) -> int:
    """The number of targets that are not ignored."""
    return int((targets != IGNORED).sum())


def autocast(device: torch.device, on: bool) -> AbstractContextManager[None]:
    """Run matrix products in bfloat16 if `on`; reductions, norms and weights stay in float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=on)


@torch.no_grad()
def evaluate(
    network: Network,
    windows: Iterable[Batch],
    bfloat16: bool = False,
    group: ProcessGroup | None = None,
) -> float:
    """The exact mean loss over all targets that are not ignored. Ranks share the windows."""
    group = group or ProcessGroup()
    device = next(network.parameters()).device
    training, total, count = network.training, 0.0, 0
    network.eval()
    for window, counts in _own_windows(windows, group):
        n_targets = count_targets(window.targets)
        if not n_targets and group.world_size == 1:
            continue
        targets = torch.from_numpy(window.targets)
        with autocast(device, bfloat16):
            for start, logits in predict_in_parts(network, window, device):
                here = targets[:, start : start + logits.shape[1]]
                n_here = count_targets(here.numpy())
                if counts and n_here:
                    total += cross_entropy(logits, here.to(device)).item() * n_here
                    count += n_here
    network.train(training)
    total, count = group.sum(total), int(group.sum(count))
    return total / count if count else math.nan


def predict_in_parts(network: Network, window: Batch, device: torch.device) -> Iterator[tuple[int, Tensor]]:
    """The logits of a window in slices of positions: pairs of the first position and B t V logits.

    Documents in one row do not see each other.
    """
    documents = None if window.documents is None else torch.from_numpy(window.documents).to(device)
    return logits_in_parts(network, torch.from_numpy(window.inputs).to(device), documents)


def _own_windows(windows: Iterable[Batch], group: ProcessGroup) -> Iterator[tuple[Batch, bool]]:
    """Each rank takes every `world_size`-th window; the second item indicates whether it counts.

    Sharded ranks must all run the network the same number of times, so at the end, ranks without a window repeat
    the last one.
    """
    pending: list[Batch] = []
    for window in windows:
        pending.append(window)
        if len(pending) == group.world_size:
            yield pending[group.rank], True
            pending.clear()
    if pending:
        yield pending[min(group.rank, len(pending) - 1)], group.rank < len(pending)
