"""Training of the labs' small networks: one thread, one step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def one_thread() -> Iterator[None]:
    """Use a single thread: with matrices this small, several would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def take_step(network: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One optimizer step, with the gradient clipped to norm 1."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
