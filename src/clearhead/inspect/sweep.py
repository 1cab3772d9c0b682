"""Sweeps: one edit at each head or each position in turn, run in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.edits import Edit, Edits
from clearhead.inspect.residual_trace import ResidualTrace, TraceT
from clearhead.inspect.sites import Site

MAX_BATCH_TOKENS = 4096  # in one batch of variants


def sweep(
    trace: TraceT,
    over: str,
    measure: Callable[[TraceT], float],
    patch_from: ResidualTrace | None = None,
) -> Tensor:
    """Return the measured values: one row per block, one column per head or position."""
    if not callable(measure):
        raise UserError(
            f"measure is {measure!r}: expected a function that takes a trace and returns a number"
        )
    table: list[list[float]] = [[] for _ in range(trace.config.n_block)]
    for block, batch in variants(trace, over, patch_from):
        table[block] += [_number(measure(batch.row(row))) for row in range(len(batch.ids))]
    return torch.tensor(table)


def variants(
    trace: TraceT,
    over: str,
    patch_from: ResidualTrace | None = None,
    blocks: Iterable[int] | None = None,
) -> Iterator[tuple[int, TraceT]]:
    """Yield batches of variants that each differ in one head or position, block by block."""
    config, T = trace.config, trace.ids.shape[1]
    kind = over.replace("×", "x").replace(" ", "")
    if kind not in ("head", "blockxposition"):
        raise UserError(f"sweep over {over!r}: expected 'head' or 'block × position'")
    if patch_from is not None and not hasattr(patch_from, "stream"):
        raise UserError(f"patch_from has type {type(patch_from).__name__}: expected a trace")
    if patch_from is not None and patch_from.ids.shape != trace.ids.shape:
        raise UserError(
            f"the other text has {patch_from.ids.shape[1]} tokens and this one {T}: "
            "patching needs the same number in both",
            "texts_differ_in_length",
            other=patch_from.ids.shape[1],
            count=T,
        )
    count = config.n_head if kind == "head" else T
    batch_size = max(1, MAX_BATCH_TOKENS // T)
    for block in range(config.n_block) if blocks is None else blocks:
        for start in range(0, count, batch_size):
            numbers = range(start, min(count, start + batch_size))
            edits = tuple(_variant(kind, block, n, row, patch_from) for row, n in enumerate(numbers))
            yield block, trace.repeat(len(numbers)).with_edits(Edits(edits))


def _number(measured: Any) -> float:
    try:
        return float(measured.item() if isinstance(measured, Tensor) else measured)
    except (TypeError, ValueError, RuntimeError):
        kind = (
            f"a tensor of shape {tuple(measured.shape)}" if isinstance(measured, Tensor) else repr(measured)
        )
        raise UserError(f"measure returned {kind[:80]}: expected one number") from None


def _variant(
    kind: str, block: int, number: int, row: int, patch_from: ResidualTrace | None
) -> tuple[Site, Edit]:
    value = 0 if patch_from is None else patch_from
    if kind == "head":
        return Site("output", block, head=number), Edit(value, row=row)
    return Site("input", block), Edit(value, at=[number], row=row)
