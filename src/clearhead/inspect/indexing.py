"""Selections of positions, rows and columns: an index, a list, a slice or a mask."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError

ROWS_AT_ONCE = 512  # bounds the memory of large matrices

Selection = slice | Sequence[int] | Tensor | int | None  # a mask is a sequence of bool; None selects all


def select_indices(selection: Any, count: int, what: str) -> list[int] | None:
    """Return the selected indices below `count`; negative ones count from the end."""
    if selection is None:
        return None
    if isinstance(selection, slice):
        try:
            return list(range(count))[selection]
        except (TypeError, ValueError):
            raise _invalid(what, selection) from None
    if hasattr(selection, "tolist"):  # a tensor or an array
        selection = selection.tolist()
    if isinstance(selection, str) or not hasattr(selection, "__iter__"):
        return [check_index(selection, count, what)]
    chosen = list(selection)
    if chosen and all(isinstance(item, bool) for item in chosen):
        if len(chosen) != count:
            raise UserError(f"the mask has {len(chosen)} entries for {count} {what}s: expected one for each")
        return [i for i, selected in enumerate(chosen) if selected]
    return [check_index(item, count, what) for item in chosen]


def check_index(index: Any, count: int, what: str) -> int:
    """Return a valid index below `count`; a negative one counts from the end."""
    try:
        if isinstance(index, bool):
            raise TypeError
        number = operator.index(index)
    except TypeError:
        raise _invalid(what, index) from None
    if not -count <= number < count:
        message = f"{what} {number} does not exist: there are {what}s 0 to {count - 1}"
        raise UserError(message, "no_such_number", what=what, number=number, last=count - 1)
    return number % count


def chunk_rows(rows: list[int]) -> list[list[int]]:
    """Split rows into chunks; an empty list gives one empty chunk."""
    return [rows[i : i + ROWS_AT_ONCE] for i in range(0, len(rows), ROWS_AT_ONCE)] or [[]]


def index_tensor(chosen: list[int] | None, device: torch.device) -> Tensor | None:
    return None if chosen is None else torch.tensor(chosen, dtype=torch.long, device=device)


def _invalid(what: str, value: object) -> UserError:
    return UserError(f"{what} {value!r}: expected an integer, a list of integers, a slice or a mask")
