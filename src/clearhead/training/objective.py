"""What training makes smaller: the surprise at each next word, or at each word hidden behind a blank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.networks import Network
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.tokens import IGNORED


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Mean (or sum) of -ln P(word) over the positions that have a target, in nats: B T V, B T → a number."""
    words = logits.float().flatten(0, 1)
    return F.cross_entropy(words, targets.flatten(), ignore_index=IGNORED, reduction=reduction)


def count_targets(targets: np.ndarray) -> int:
    """How many are not ignored."""
    return int((targets != IGNORED).sum())


def half_precision(device: torch.device, on: bool) -> AbstractContextManager[None]:
    """Matrix products in bfloat16 inside, if on; sums, norms and weights stay in float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=on)


@torch.no_grad()
def evaluate(
    network: Network,
    windows: Iterable[tuple[np.ndarray, np.ndarray]],
    bfloat16: bool = False,
    workers: ProcessGroup | None = None,
) -> float:
    """Exact mean loss over all targets of the windows but those that are ignored; workers take turns."""
    workers = workers or ProcessGroup()
    device = next(network.parameters()).device
    training, total, count = network.training, 0.0, 0
    network.eval()
    for inputs, targets, is_own in _turns(windows, workers):
        counted = count_targets(targets)
        if not counted and workers.count == 1:
            continue
        with half_precision(device, bfloat16):
            logits = network(torch.from_numpy(inputs).to(device))
        loss = cross_entropy(logits, torch.from_numpy(targets).to(device))
        if is_own and counted:
            total += loss.item() * counted
            count += counted
    network.train(training)
    total, count = workers.add(total), int(workers.add(count))
    return total / count if count else math.nan


def _turns(
    windows: Iterable[tuple[np.ndarray, np.ndarray]], workers: ProcessGroup
) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
    """Every so manieth for each worker; those that are left without at the end read the last one too.

    For sharded, all must run the network equally often.
    """
    turn: list[tuple[np.ndarray, np.ndarray]] = []
    for window in windows:
        turn.append(window)
        if len(turn) == workers.count:
            yield *turn[workers.number], True
            turn.clear()
    if turn:
        yield *turn[min(workers.number, len(turn) - 1)], workers.number < len(turn)
