"""Edits: values that replace what the model computes at a site."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, Union, runtime_checkable

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.indexing import Selection, check_index, select_indices
from clearhead.inspect.sites import MATRICES, Site, parse_site
from clearhead.model.config import Config

EditValue = Union[int, float, Tensor, Callable[[Tensor], Any], "PatchSource"]


@runtime_checkable
class PatchSource(Protocol):
    """The interface of a trace that edits can patch from."""

    edits: Edits
    single: bool

    def read(self, name: str) -> Tensor: ...

    def row(self, number: int) -> Self: ...


@dataclass(frozen=True)
class Edit:
    """A replacement value: a number, a tensor, a function of the current value, or a trace to patch from.

    `at` selects positions, counted in each text without its padding; `columns` selects features or, in the
    matrices of a head, key positions; `row` selects one sequence of a batch. Each defaults to all. A tensor
    must have all columns even if `columns` selects only a few.
    """

    value: EditValue
    at: Selection = None
    row: int | None = None
    columns: Selection = None


@dataclass(frozen=True)
class Edits:
    """Active edits, in the order in which they were made.

    `spans` has the start and end of each sequence in a padded batch. With `grows`, as in generation, edits
    at positions beyond the end are ignored until the text reaches them, and without `at`,
    a tensor covers only the positions it has values for.
    """

    made: tuple[tuple[Site, Edit], ...] = ()
    spans: tuple[tuple[int, int], ...] | None = None
    grows: bool = False

    @classmethod
    def parse(cls, changes: Mapping[str, EditValue | Edit], config: Config, grows: bool = False) -> Edits:
        if not isinstance(changes, Mapping):
            raise UserError(
                f"edits = {changes!r}: expected a dict of sites and values, such as {{'final': 0}}"
            )
        made = []
        for name, value in changes.items():
            site, edit = parse_site(name, config), value if isinstance(value, Edit) else Edit(value)
            made.append((site, replace(edit, value=_checked(site, edit.value))))
        return cls(tuple(made), grows=grows)

    def __add__(self, other: Edits) -> Edits:
        return replace(self, made=self.made + other.made)

    @property
    def wants_grad(self) -> bool:
        values = [edit.value for _, edit in self.made]
        return any(isinstance(value, Tensor) and value.requires_grad for value in values)

    def of_row(self, number: int) -> Edits:
        """Return the edits that affect one sequence of a batch, as edits of that sequence without its padding."""
        made = []
        for site, edit in self.made:
            if edit.row is None or edit.row == number:
                made.append((site, replace(edit, row=None, value=self._value_of_row(site, edit, number))))
        return Edits(tuple(made))

    def _value_of_row(self, site: Site, edit: Edit, number: int) -> EditValue:
        value = edit.value
        if not isinstance(value, Tensor):
            return (
                value
                if isinstance(value, int | float) or callable(value) or value.single
                else value.row(number)
            )
        n_dims = 1 if site.name.endswith((".mean", ".scale")) else 2
        value = value[number if len(value) > 1 else 0] if value.dim() > n_dims else value
        if self.spans is None or edit.at is not None:
            return value
        start, stop = self.spans[number]
        return value[start:stop, start:stop] if site.name in MATRICES else value[start:stop]

    def of(self, block: int | None) -> Edits:
        """Return the edits inside a block or, for None, those outside the blocks."""
        return replace(self, made=tuple(made for made in self.made if made[0].block == block))

    def touch(self, *sites: Site) -> bool:
        return any(site in sites for site, _ in self.made)

    def first_block(self, n_block: int) -> int:
        """Return the first block that must be recomputed."""
        firsts = [n_block]
        for site, _ in self.made:
            if site.block is not None:
                firsts.append(site.block)
            elif site.name in ("embedding", "position"):
                firsts.append(0)
        return min(firsts)

    def apply(self, site: Site, tensor: Tensor) -> Tensor:
        """Apply these edits to the value of a site: B T …."""
        for where, edit in self.made:
            if where == site:
                tensor = self._put(edit, site, tensor)
        return tensor

    def _put(self, edit: Edit, site: Site, tensor: Tensor) -> Tensor:
        B, T = tensor.shape[:2]
        rows = list(range(B)) if edit.row is None else [check_index(edit.row, B, "row")]
        if edit.at is None and not self._has_positions(edit.value):
            return _write(edit, site, tensor, rows, list(range(T)), 0)
        if self.spans is None:
            return _write(edit, site, tensor, rows, self._positions(edit, T), 0)
        for row in rows:
            start, stop = self.spans[row]
            tensor = _write(edit, site, tensor, [row], self._positions(edit, stop - start), start)
        return tensor

    def _has_positions(self, value: EditValue) -> bool:
        return self.grows and isinstance(value, Tensor) and value.dim() > 0

    def _positions(self, edit: Edit, length: int) -> list[int]:
        """Return the edited positions of a sequence of this length."""
        at: Any = edit.at
        if at is None:
            assert isinstance(edit.value, Tensor)
            return list(range(min(length, len(edit.value))))
        if self.grows and not isinstance(at, slice):
            # Ignore positions beyond the end; negative positions follow the end as it moves.
            listed = at.tolist() if hasattr(at, "tolist") else at
            listed = [listed] if isinstance(listed, int) else list(listed)
            at = [i for i in listed if not isinstance(i, int) or -length <= i < length]
        return select_indices(at, length, "position") or []


def _write(edit: Edit, site: Site, tensor: Tensor, rows: list[int], at: list[int], start: int) -> Tensor:
    """Write the value into these rows at these positions, counted from `start`."""
    if not at:
        return tensor
    device = tensor.device
    places = torch.tensor([start + i for i in at], device=device)
    index = (torch.tensor(rows, device=device)[:, None], places)
    current = tensor[index]
    value = _value(edit, site, current, rows, at)
    if edit.columns is not None:
        across = _columns(edit, site, tensor, start)
        value = current.index_copy(-1, across, value.to(current.dtype).to(device)[..., across])
    changed = tensor.clone()
    changed[index] = value.to(tensor.dtype).to(device)
    return changed


def _columns(edit: Edit, site: Site, tensor: Tensor, start: int) -> Tensor:
    if tensor.dim() == 2:
        raise UserError(f"{site}: columns cannot be selected because the site has one number per position")
    first = start if site.name in MATRICES else 0
    chosen = select_indices(edit.columns, tensor.shape[-1] - first, "column") or []
    return torch.tensor([first + i for i in chosen], device=tensor.device, dtype=torch.long)


def _checked(site: Site, value: Any) -> Any:
    """Return the value as a number, tensor, function or trace, or raise UserError."""
    if isinstance(value, Tensor | PatchSource):
        pass
    elif isinstance(value, numbers.Real):
        return float(value)
    elif hasattr(value, "__array__") or isinstance(value, list | tuple):
        try:
            value = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            raise _no_value(site, value) from None
    elif not callable(value):
        raise _no_value(site, value)
    if isinstance(value, Tensor):
        if value.is_complex():
            raise UserError(f"{site}: the value is complex, expected real numbers")
        return value.item() if value.dim() == 0 and not value.requires_grad else value
    return value


def _no_value(site: Site, value: object) -> UserError:
    return UserError(
        f"{site}: {str(value)[:60]!r} is not a value: expected a number, a tensor, a function or a trace"
    )


def _value(edit: Edit, site: Site, current: Tensor, rows: list[int], at: list[int]) -> Tensor:
    """Return the new value for rows × positions × …, checked against the shape of the current one."""
    value: Any = edit.value
    if callable(value):
        value = value(current[0] if len(current) == 1 else current)
    elif not isinstance(value, Tensor | int | float):
        value = _from_trace(value, site, rows, None if edit.at is None else at)
    elif isinstance(value, Tensor) and value.dim() == current.dim() and len(value) > len(rows) == 1:
        value = value[rows]  # this row of a value for the whole batch
    if isinstance(value, int | float):
        return torch.full_like(current, value)
    if not isinstance(value, Tensor):
        raise UserError(f"{site}: the function returned a {type(value).__name__}, expected a tensor")
    if value.dim() == 0:
        return value.expand_as(current)
    shaped = value if value.dim() == current.dim() else value[None]
    if shaped.shape not in (current.shape, current[:1].shape):
        one = value[0] if value.dim() == current.dim() and len(value) == 1 else value
        shape, expected = ("×".join(map(str, tensor.shape)) for tensor in (one, current[0]))
        message = f"{site}: the value is {shape}, expected {expected}"
        raise UserError(message, "edit_does_not_fit", site=str(site))
    return shaped.expand_as(current)


def _from_trace(other: PatchSource, site: Site, rows: list[int], at: list[int] | None) -> Tensor:
    """Return the value of the other trace, at the selected positions if there are any."""
    value = other.read(str(site))
    if at is None:
        return value
    whole, spans = (value[None] if other.single else value), other.edits.spans
    parts = []
    for row in rows if len(whole) > 1 else [0]:
        start, stop = (0, whole.shape[1]) if spans is None else spans[row]
        if max(at) >= stop - start:
            message = f"{site}: the other trace has positions 0 to {stop - start - 1}, not {max(at)}"
            raise UserError(message, "edit_does_not_fit", site=str(site))
        parts.append(whole[row, [start + i for i in at]])
    return torch.stack(parts)
