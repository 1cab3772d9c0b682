"""What the stops share: digits as vectors, tensors as tables, and the built-in model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from clearhead.inspect.trace import Trace
from clearhead.labs.attention import VECTORS
from clearhead.labs.lab import Table
from clearhead.language_model import LanguageModel, load


def embed(digits: str) -> Tensor:
    """T digits as T 2: 0 is [1, 0], 1 is [0, 1]."""
    return torch.tensor([VECTORS[digit] for digit in digits], dtype=torch.float64)


def matrix(rows: Sequence[Sequence[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def table(
    name: str, rows: Sequence[str], columns: Sequence[str], values: Tensor, shaded: bool = False
) -> Table:
    return Table(name, [*rows], [*columns], values.tolist(), shaded)


def name_digits(digits: str) -> list[str]:
    return [f"w{i} = {digit}" for i, digit in enumerate(digits, 1)]


def name_tokens(tokens: Sequence[str]) -> list[str]:
    """Tokens with their numbers, so that repeated ones can be told apart: 1 The, 2 chicken, …"""
    return [f"{i} {token.strip()}" for i, token in enumerate(tokens, 1)]


@cache
def stories() -> LanguageModel:
    return load("stories", "cpu")


def trace_of(text: str) -> Trace:
    trace = stories().inspect(text)
    assert isinstance(trace, Trace)
    return trace
