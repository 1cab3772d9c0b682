"""The teachers of a run: models with one tokenizer, whose predictions a student learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.formats.opening import open_model
from clearhead.networks import SingleNetwork
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Teachers:
    networks: tuple[SingleNetwork, ...]
    tokenizer: Tokenizer
    n_context: int  # the shortest context
    training: dict[str, Any] | None  # how the first was trained, if we trained it

    @property
    def batch(self) -> int | None:
        """The rows of a batch of the first teacher, if known."""
        rows = ((self.training or {}).get("recipe") or {}).get("batch_size")
        return rows if type(rows) is int else None


def open_teachers(names: Sequence[str], device: torch.device) -> Teachers | None:
    """The teachers on the device, if there are any, in evaluation mode and without gradients."""
    if not names:
        return None
    first, *others = saved = [open_model(name) for name in names]
    for name, each in zip(names, saved, strict=True):
        if not each.network.config.causal:
            raise UserError(f"{name} is bidirectional: it fills in blanks and cannot teach what comes next")
    for name, other in zip(names[1:], others, strict=True):
        if other.tokenizer.to_json() != first.tokenizer.to_json():
            raise UserError(f"{name} has a different tokenizer from {names[0]}: teachers must share one")
    for name, each in zip(names, saved, strict=True):
        if each.network.config.n_vocab != first.tokenizer.n_vocab:
            raise UserError(
                f"{name} predicts {each.network.config.n_vocab:,} tokens, and its tokenizer has "
                f"{first.tokenizer.n_vocab:,}: it cannot teach"
            )
    networks = tuple(each.network.to(device).eval().requires_grad_(False) for each in saved)
    n_context = min(each.config.n_context for each in networks)
    return Teachers(networks, first.tokenizer, n_context, first.training)
