"""Answers as plain data: converted to JSON and back, compared with a tolerance, and shown on one line."""

from __future__ import annotations

import math
from typing import Any

import torch

MOST_NUMBERS = 100_000  # in one answer
DEEPEST = 8
RELATIVE, ABSOLUTE = 1e-3, 1e-4
LONGEST_SHOWN = 60  # characters


def plain(value: Any) -> Any:
    """Convert an answer to numbers, strings and lists of them, for JSON; raise TypeError for anything else."""
    budget = [MOST_NUMBERS]
    return _plain(value, 0, budget)


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > DEEPEST or budget[0] < 0:
        raise TypeError("the answer is too large")
    if isinstance(value, torch.Tensor) or type(value).__module__ == "numpy":
        size = value.numel() if isinstance(value, torch.Tensor) else value.size
        if size > budget[0]:
            raise TypeError("the answer is too large")
        value = value.tolist()
    if value is None or value is Ellipsis:
        return None
    if isinstance(value, bool | int | float | str):
        # The exact types: a subclass could pretend to be equal to everything.
        kind = next(each for each in (bool, int, float, str) if isinstance(value, each))
        return kind(value)
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1, budget) for each in value]
    raise TypeError(f"the answer is of type {type(value).__name__}: expected numbers, text or a list of them")


def encode(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments as JSON; tensors are marked."""
    return [
        {"tensor": each.tolist()} if isinstance(each, torch.Tensor) else {"value": each} for each in arguments
    ]


def decode(arguments: list[Any]) -> list[Any]:
    return [torch.tensor(each["tensor"]) if "tensor" in each else each["value"] for each in arguments]


def same(given: Any, expected: Any) -> bool:
    """Whether two answers agree, with a tolerance for numbers; lists, tuples and tensors are interchangeable."""
    try:
        return _agree(plain(given), plain(expected))
    except TypeError:
        return False


def _agree(given: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return (
            isinstance(given, list)
            and len(given) == len(expected)
            and all(map(_agree, given, expected))  # of equal length
        )
    if isinstance(expected, str):
        return isinstance(given, str) and given.strip() == expected.strip()
    if isinstance(expected, int | float) and isinstance(given, int | float):
        if isinstance(expected, int):
            return given == expected
        try:
            return math.isclose(given, expected, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        except OverflowError:  # an integer that is too large for a float
            return False
    return given is None and expected is None


def shown(value: Any) -> str:
    """An answer on one short line, with numbers rounded."""
    try:
        text = _rounded(value)
    except RecursionError:
        text = "lists nested too deeply"
    text = "".join(c if c.isprintable() else "?" for c in text[: LONGEST_SHOWN + 1])
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _rounded(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return f"[{', '.join(_rounded(each) for each in value[:20])}{', …' if len(value) > 20 else ''}]"
    return repr(value)
