"""Two traces side by side: their tokens aligned, and how far apart they are at every site."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.inspect.sites import MATRICES

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace


@dataclass(frozen=True)
class Comparison:
    """`pairs` are positions of the one and of the other that belong together."""

    one: Trace
    other: Trace
    pairs: list[tuple[int, int]]

    def difference(self, site: str) -> Tensor:
        """The other less the one at the pairs; of a matrix, at pairs both ways. Where both are -inf, 0."""
        first, second = self._aligned(site)
        return torch.where(first == second, torch.zeros_like(first), second - first)

    def distance(self, site: str) -> float:
        """‖difference‖ over ‖value‖ at a site."""
        first, _ = self._aligned(site)
        size = first[first.isfinite()].norm().clamp(min=1e-30)
        return (self.difference(site).norm() / size).item()

    def ranking(self, count: int = 20) -> list[tuple[str, float]]:
        """The sites that differ most, first."""
        distances = [(site, self.distance(site)) for site in self.one.sites()]
        return sorted(distances, key=lambda each: -each[1])[:count]

    def _aligned(self, site: str) -> tuple[Tensor, Tensor]:
        sides = []
        for trace, positions in zip((self.one, self.other), zip(*self.pairs, strict=True), strict=True):
            columns = positions if site.split(".")[-1] in MATRICES else None
            sides.append(trace.read(site, rows=positions, columns=columns))
        return sides[0], sides[1]


def align(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    """Positions of the same tokens, and of those that stand in the same place between them."""
    pairs = []
    for kind, a, a_stop, b, b_stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind in ("equal", "replace") and a_stop - a == b_stop - b:
            pairs += list(zip(range(a, a_stop), range(b, b_stop), strict=True))
    return pairs
