"""The loss by position in the window: it falls with position if a model uses long context."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.networks import Network
from clearhead.text.batches import Batch


@dataclass(frozen=True)
class PositionLoss:
    """Sum and count of losses at each position, in nats: T each, float64."""

    sums: Tensor
    counts: Tensor

    def __add__(self, other: PositionLoss) -> PositionLoss:
        return PositionLoss(self.sums + other.sums, self.counts + other.counts)

    @property
    def total(self) -> float:
        return self.sums.sum().item()

    @property
    def tokens(self) -> int:
        return int(self.counts.sum())

    def bins(self) -> list[tuple[float, float]]:
        """(mean number of tokens read, mean loss) for positions 0, 1, 2 to 3, 4 to 7, …"""
        found, first, T = [], 0, len(self.sums)
        while first < T:
            stop = min(T, max(1, 2 * first))
            count = self.counts[first:stop].sum().item()
            if count:
                found.append(((first + 1 + stop) / 2, self.sums[first:stop].sum().item() / count))
            first = stop
        return found


@torch.no_grad()
def measure_positions(network: Network, windows: Iterable[Batch], T: int) -> PositionLoss:
    """The loss of every target of the windows, none of which is longer than T."""
    device, training = next(network.parameters()).device, network.training
    sums, counts = torch.zeros(2, T, dtype=torch.float64)
    network.eval()
    for inputs, targets in windows:
        logits = network(torch.from_numpy(inputs).to(device)).float()
        losses = F.cross_entropy(
            logits.flatten(0, 1), torch.from_numpy(targets).to(device).flatten(), reduction="none"
        )
        B, length = targets.shape
        sums[:length] += losses.view(B, length).double().sum(0).cpu()
        counts[:length] += B
    network.train(training)
    return PositionLoss(sums, counts)


def bits_per_byte(nats: float, n_bytes: int) -> float:
    return nats / math.log(2) / n_bytes
