"""The teachers of a run: models with one tokenizer, from whose predictions a student learns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.formats.opening import open_model
from clearhead.formats.saved import Saved
from clearhead.language_model import LanguageModel
from clearhead.networks import Network, SingleNetwork, need_single
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Teachers:
    networks: tuple[SingleNetwork, ...]
    tokenizer: Tokenizer
    n_context: int  # the shortest context
    training: dict[str, Any] | None  # how the first was trained, if we trained it
    losses: tuple[float, ...]  # of those that we trained, on the validation text of their runs

    def __len__(self) -> int:
        """Their number, which is lower than requested if there was no time for more."""
        return len(self.networks)

    @property
    def batch(self) -> int | None:
        """The rows of a batch of the first teacher, if known."""
        rows = ((self.training or {}).get("recipe") or {}).get("batch_size")
        return rows if type(rows) is int else None


def open_teachers(given: Sequence[str | LanguageModel], device: torch.device) -> Teachers | None:
    """The teachers on the device, if there are any, in evaluation mode and without gradients.

    Loaded models are copied, so that they do not change.
    """
    if not given:
        return None
    names = [each.name if isinstance(each, LanguageModel) else each for each in given]
    first, *others = saved = [_open(each) for each in given]
    for name, each in zip(names, saved, strict=True):
        if not each.network.config.causal:
            raise UserError(f"{name} is bidirectional: it fills in blanks and cannot teach what comes next")
    for name, other in zip(names[1:], others, strict=True):
        if other.tokenizer.to_json() != first.tokenizer.to_json():
            raise UserError(f"{name} has a different tokenizer from {names[0]}: teachers must share one")
    for name, each in zip(names, saved, strict=True):
        if each.network.config.n_vocab != first.tokenizer.n_vocab:
            raise UserError(
                f"{name} predicts {each.network.config.n_vocab:,} tokens, but its tokenizer has "
                f"{first.tokenizer.n_vocab:,}: it cannot teach"
            )
    networks = tuple(each.network.to(device).eval().requires_grad_(False) for each in saved)
    n_context = min(each.config.n_context for each in networks)
    losses = [(each.training or {}).get("validation_loss") for each in saved]
    known = tuple(loss for loss in losses if type(loss) is float)
    return Teachers(networks, first.tokenizer, n_context, first.training, known)


def hash_network(network: Network) -> str:
    """The sha256 of a loaded network's weights."""
    found = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()


def _open(given: str | LanguageModel) -> Saved:
    if isinstance(given, str):
        return open_model(given)
    network = deepcopy(need_single(given.network, "a teacher"))
    return Saved(network, given.tokenizer, given.training)
