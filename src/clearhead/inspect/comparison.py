"""The comparison of two traces: aligned tokens, and the distance at every site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic

import torch
from torch import Tensor

from clearhead.inspect.block_steps import BlockSteps
from clearhead.inspect.residual_trace import TraceT
from clearhead.inspect.sites import MATRICES, all_sites
from clearhead.summary_table import TableCell, html_table, plural

MAX_MATRIX_CELLS = 2**24  # in the attention matrices of the heads computed together


@dataclass(frozen=True, repr=False)
class Comparison(Generic[TraceT]):
    """Two traces; each of the `pairs` is a position in `one` and the aligned position in `other`."""

    one: TraceT
    other: TraceT
    pairs: list[tuple[int, int]]

    def __repr__(self) -> str:
        return f"Comparison({self.one!r}, {self.other!r}: {plural(len(self.pairs), 'aligned position')})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, TableCell]] = [("one", repr(self.one)), ("other", repr(self.other))]
        rows.append(("aligned positions", len(self.pairs)))
        return html_table((), rows, "Comparison")

    def difference(self, site: str) -> Tensor:
        """Return other - one at the aligned positions, along both axes of a matrix; 0 where both are -inf."""
        return _difference(*self._aligned(site))

    def distance(self, site: str) -> float:
        """Return ‖difference‖/‖value‖ at a site."""
        return _distance(*self._aligned(site))

    def ranking(self, count: int = 20) -> list[tuple[str, float]]:
        """Return the sites that differ most, in descending order."""
        distances = self.distances(None)
        for block in range(self.one.config.n_block):
            distances |= self.distances(block)
        return sorted(distances.items(), key=lambda item: -item[1])[:count]

    def distances(self, block: int | None) -> dict[str, float]:
        """Return the distance at every site of a block (None: outside the blocks), in the order of `all_sites`."""
        sites = [site for site in all_sites(self.one.config) if site.block == block]
        if block is None:
            return {str(site): self.distance(str(site)) for site in sites}
        config, T = self.one.config, max(len(self.one), len(self.other))
        group, chunk_size = config.n_head // config.n_kv_head, max(1, MAX_MATRIX_CELLS // T**2)
        all_heads, distances = self._steps(block, None), {}
        for first in range(0, config.n_head, chunk_size):
            heads = range(first, min(config.n_head, first + chunk_size))
            sides = all_heads if len(heads) == config.n_head else self._steps(block, heads)
            for site in sites:
                head = site.head if site.kv_head is None else group * site.kv_head
                if head is None and first == 0:
                    distances[site] = _distance(
                        *self._at_pairs(site.name, [steps.read(site)[0] for steps in all_heads])
                    )
                elif head is not None and head in heads:
                    pair = [steps.read(site)[0, head - first] for steps in sides]
                    distances[site] = _distance(*self._at_pairs(site.name, pair))
        return {str(site): distances[site] for site in sites}

    def _steps(self, block: int, heads: Sequence[int] | None) -> list[BlockSteps]:
        return [trace.steps(block, heads) for trace in (self.one, self.other)]

    def _at_pairs(self, name: str, sides: list[Tensor]) -> list[Tensor]:
        positions = [list(column) for column in zip(*self.pairs, strict=True)]
        rows = [side[positions[i]] for i, side in enumerate(sides)]
        return [side[:, positions[i]] for i, side in enumerate(rows)] if name in MATRICES else rows

    def _aligned(self, site: str) -> tuple[Tensor, Tensor]:
        sides = []
        for trace, positions in zip((self.one, self.other), zip(*self.pairs, strict=True), strict=True):
            columns = positions if site.split(".")[-1] in MATRICES else None
            sides.append(trace.read(site, rows=positions, columns=columns))
        return sides[0], sides[1]


def _difference(first: Tensor, second: Tensor) -> Tensor:
    return torch.where(first == second, torch.zeros_like(first), second - first)


def _distance(first: Tensor, second: Tensor) -> float:
    size = first[first.isfinite()].norm().clamp(min=1e-30)
    return (_difference(first, second).norm() / size).item()


def align(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    """Pair the positions of equal tokens, and of replaced tokens in runs of equal length."""
    pairs = []
    for kind, a, a_stop, b, b_stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind in ("equal", "replace") and a_stop - a == b_stop - b:
            pairs += list(zip(range(a, a_stop), range(b, b_stop), strict=True))
    return pairs
