"""Edits: what to put at a site in place of what is computed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Union

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.sites import Site, parse_site
from clearhead.model.config import Config

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace

Value = Union[int, float, Tensor, Callable[[Tensor], Tensor], "Trace"]


@dataclass(frozen=True)
class Edit:
    """A value to put there: a number, a tensor, a function of what is there, or another trace (its value).

    `at` are the positions to change, all unless said; `row` is one sequence of a batch, all unless said.
    """

    value: Value
    at: Sequence[int] | None = None
    row: int | None = None


@dataclass(frozen=True)
class Edits:
    """Edits in force, in the order in which they were made."""

    made: tuple[tuple[Site, Edit], ...] = ()

    @classmethod
    def parse(cls, changes: Mapping[str, Value | Edit], config: Config) -> Edits:
        made = []
        for name, value in changes.items():
            made.append((parse_site(name, config), value if isinstance(value, Edit) else Edit(value)))
        return cls(tuple(made))

    def __add__(self, other: Edits) -> Edits:
        return Edits(self.made + other.made)

    def of_row(self, number: int) -> Edits:
        """Those that reach one sequence of a batch, as edits of that sequence alone."""
        made = [(site, edit) for site, edit in self.made if edit.row in (None, number)]
        return Edits(tuple((site, replace(edit, row=None)) for site, edit in made))

    def of(self, block: int | None) -> Edits:
        """Those inside a block, or for None those at the ends."""
        return Edits(tuple(each for each in self.made if each[0].block == block))

    def first_block(self, n_block: int) -> int:
        """The first block that must be run again."""
        firsts = [n_block]
        for site, _ in self.made:
            if site.block is not None:
                firsts.append(site.block)
            elif site.name in ("embedding", "position"):
                firsts.append(0)
        return min(firsts)

    def apply(self, site: Site, tensor: Tensor) -> Tensor:
        """What stands at the site with these edits: B T …."""
        for where, edit in self.made:
            if where == site:
                tensor = _put(edit, site, tensor)
        return tensor


def _put(edit: Edit, site: Site, tensor: Tensor) -> Tensor:
    B, T = tensor.shape[:2]
    for position in edit.at or ():
        if not -T <= position < T:
            raise UserError(f"position {position} does not exist: there are positions 0 to {T - 1}")
    rows = list(range(B)) if edit.row is None else [edit.row]
    positions = list(range(T)) if edit.at is None else [position % T for position in edit.at]
    index = (torch.tensor(rows, device=tensor.device)[:, None], torch.tensor(positions, device=tensor.device))
    there = tensor[index]
    value = _value(edit, site, there, positions)
    changed = tensor.clone()
    changed[index] = value.to(tensor.dtype).to(tensor.device)
    return changed


def _value(edit: Edit, site: Site, there: Tensor, positions: list[int]) -> Tensor:
    """The new value for rows × positions × …, checked to fit what is there."""
    value = edit.value
    if isinstance(value, int | float):
        return torch.full_like(there, value)
    if callable(value):
        value = value(there[0] if len(there) == 1 else there)
    elif not isinstance(value, Tensor):
        value = value.read(str(site))
        whole = value if value.dim() == there.dim() else value[None]
        if edit.at is not None and whole.shape[1] > max(positions):
            value = whole[:, positions]
    if not isinstance(value, Tensor):
        raise UserError(f"{site}: the function gave a {type(value).__name__}, expected a tensor")
    shaped = value if value.dim() == there.dim() else value[None]
    if shaped.shape not in (there.shape, there[:1].shape):
        expected = "×".join(map(str, there.shape[1:]))
        raise UserError(f"{site}: the value is {'×'.join(map(str, value.shape))}, expected {expected}")
    return shaped.expand_as(there)
