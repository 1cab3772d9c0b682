"""The loss by position in the window: it falls with position if a model uses long context."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.model.position import document_positions
from clearhead.networks import Network
from clearhead.text.batches import Batch
from clearhead.text.tokens import IGNORED
from clearhead.training.objective import predict_in_parts


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
    """The losses of all targets in the windows, each at most T tokens long, by position in their documents."""
    device, training = next(network.parameters()).device, network.training
    sums, counts = torch.zeros(2, T, dtype=torch.float64)
    network.eval()
    for window in windows:
        documents = np.zeros_like(window.targets) if window.documents is None else window.documents
        all_places = document_positions(torch.from_numpy(documents))
        all_targets = torch.from_numpy(window.targets)
        for start, logits in predict_in_parts(network, window, device):
            here = slice(start, start + logits.shape[1])
            places, targets = all_places[:, here].flatten(), all_targets[:, here].flatten()
            flat = logits.float().flatten(0, 1)
            losses = F.cross_entropy(flat, targets.to(device), ignore_index=IGNORED, reduction="none")
            counted = targets != IGNORED
            sums.index_add_(0, places[counted], losses.double().cpu()[counted])
            counts.index_add_(0, places[counted], counted[counted].double())
    network.train(training)
    return PositionLoss(sums, counts)


def bits_per_byte(nats: float, n_bytes: int) -> float:
    return nats / math.log(2) / n_bytes
