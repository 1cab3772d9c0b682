"""The contents of a model's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clearhead.networks import SingleNetwork
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Saved:
    network: SingleNetwork
    tokenizer: Tokenizer
    training: dict[str, Any] | None  # how it was trained, if we trained it
