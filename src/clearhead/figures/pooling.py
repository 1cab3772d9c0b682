"""Pooling: shrink, a few rows at a time, a matrix that is too large to show or to compute at once.

Shapes: T positions, N cells per side, F features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clearhead.inspect.sites import MATRICES
from clearhead.inspect.state_trace import AnyTrace

MOST_NUMBERS = 2**22  # matrix entries computed at once


def is_matrix(site: str) -> bool:
    return site.split(".")[-1] in MATRICES


def read_pooled(
    trace: AnyTrace, site: str, rows: range, columns: range | None, size: int, across: int
) -> Any:
    """A site with `size` rows and `across` columns per cell, as an array, computed a few rows at a time.

    A cell of attention weights is the fraction of its attention that a row puts on the cell's columns, averaged
    over rows, so a row of cells still sums to 1. For other sites, a cell is the mean of the finite numbers,
    or NaN.
    """
    wide = trace.ids.shape[1] if is_matrix(site) else 1
    at_once = max(1, MOST_NUMBERS // wide // size) * size
    chosen = None if columns is None or len(columns) == wide else slice(columns.start, columns.stop)
    parts = []
    for start in range(rows.start, rows.stop, at_once):
        some = slice(start, min(start + at_once, rows.stop))
        value = trace.read(site, rows=some, columns=chosen).detach().float().cpu().numpy()
        parts.append(
            pool_weights(value, size, across) if site.endswith(".weights") else pool(value, size, across)
        )
    return np.concatenate(parts)


def pool(value: Any, size: int, across: int) -> Any:
    """The mean of the finite numbers in each cell of size × across; NaN if there are none."""
    if size == across == 1:
        return value
    finite = np.isfinite(value)
    total = _sums(np.where(finite, value, 0), size, across)
    count = _sums(finite.astype(np.float32), size, across)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def pool_weights(value: Any, size: int, across: int) -> Any:
    """For each cell, the weight that a row puts on the cell's columns, averaged over its rows: … T T → … N N."""
    if size == across == 1:
        return value
    T = value.shape[-2]
    rows = np.diff([*range(0, T, size), T])
    return _sums(value, size, across) / rows[:, None]


def _sums(value: Any, size: int, across: int) -> Any:
    down = np.add.reduceat(value, range(0, value.shape[-2], size), axis=-2)
    return np.add.reduceat(down, range(0, value.shape[-1], across), axis=-1)
