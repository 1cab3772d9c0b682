"""Choices of positions, rows and columns, in any way a person may write them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError

ROWS_AT_ONCE = 512  # of large matrices

Choice = slice | Sequence[int] | Tensor | int | None  # a mask is a sequence of bool; none is all


def choose(choice: Any, count: int, what: str) -> list[int] | None:
    """The numbers chosen of so many: one, several, a slice, or a mask. Negative ones count from the end."""
    if choice is None:
        return None
    if isinstance(choice, slice):
        try:
            return list(range(count))[choice]
        except (TypeError, ValueError):
            raise _not_a(what, choice) from None
    if hasattr(choice, "tolist"):  # a tensor or an array
        choice = choice.tolist()
    if isinstance(choice, str) or not hasattr(choice, "__iter__"):
        return [check_index(choice, count, what)]
    chosen = list(choice)
    if chosen and all(isinstance(each, bool) for each in chosen):
        if len(chosen) != count:
            raise UserError(f"the mask has {len(chosen)} entries for {count} {what}s: expected one for each")
        return [i for i, each in enumerate(chosen) if each]
    return [check_index(each, count, what) for each in chosen]


def check_index(given: Any, count: int, what: str) -> int:
    """One number of so many, counted from the end where negative."""
    try:
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise _not_a(what, given) from None
    if not -count <= number < count:
        message = f"{what} {number} does not exist: there are {what}s 0 to {count - 1}"
        raise UserError(message, "no_such_number", what=what, number=number, last=count - 1)
    return number % count


def in_chunks(rows: list[int]) -> list[list[int]]:
    """So many rows at a time; where there are none, none once."""
    return [rows[i : i + ROWS_AT_ONCE] for i in range(0, len(rows), ROWS_AT_ONCE)] or [[]]


def as_index(chosen: list[int] | None, device: torch.device) -> Tensor | None:
    return None if chosen is None else torch.tensor(chosen, dtype=torch.long, device=device)


def _not_a(what: str, given: object) -> UserError:
    return UserError(f"{what} {given!r}: expected a whole number, several, a slice or a mask")
