"""Optimizers that do not import PyTorch's compiler.

PyTorch's methods import it only to exclude themselves from compilation; the import takes a second or more at the
start of training.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch


class Optimizer(torch.optim.Optimizer):
    """`torch.optim.Optimizer`."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        unwrap(torch.optim.Optimizer.add_param_group)(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        unwrap(torch.optim.Optimizer.zero_grad)(self, set_to_none)


class AdamW(Optimizer, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        unwrap(torch.optim.Adam.step)(self)
