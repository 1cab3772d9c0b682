"""Vectors of words: one word in many sentences as a map, and the words that lie nearest to a vector.

Shapes: N occurrences, S stages, C features of the stream, V words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clearhead.errors import UserError
from clearhead.inspect.base_trace import BaseTrace, stages
from clearhead.inspect.residual_trace import ResidualTrace


@dataclass(frozen=True)
class SenseMap:
    """Where a word stands, as (text, position), and what its vectors are like at every stage."""

    places: list[tuple[int, int]]
    points: Tensor  # S N 2: on the two directions in which they differ most
    shares: Tensor  # S 2: of how they differ, what each of the two shows
    cosines: Tensor  # S N N


def map_senses(traces: Sequence[BaseTrace], word: str) -> SenseMap:
    """Every occurrence of a word in these texts; texts without it are left out."""
    places = []
    for number, trace in enumerate(traces):
        try:
            places += [(number, position) for position in trace.positions_of(word)]
        except UserError:
            continue
    if len(places) < 2:
        count = "once" if places else "not at all"
        message = f"{word!r} occurs {count} in these texts: expected at least two occurrences"
        raise UserError(message, "word_seldom", word=word, count=len(places))
    points, shares, cosines = [], [], []
    for stage in stages(traces[0].config):
        vectors = torch.stack([traces[number].read(stage, rows=at)[0] for number, at in places]).float()
        unit = normalize(vectors, dim=-1)
        cosines.append(unit @ unit.T)
        projected, share = _principal(vectors)
        points.append(projected)
        shares.append(share)
    return SenseMap(places, torch.stack(points), torch.stack(shares), torch.stack(cosines))


def _principal(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """N C → N 2, and the share of the variance that each direction shows; of alike vectors nothing."""
    centred = vectors - vectors.mean(0)
    if centred.norm() <= 1e-5 * vectors.norm():
        return vectors.new_zeros(len(vectors), 2), vectors.new_zeros(2)
    left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
    projected, share = left * sizes, sizes**2 / (sizes**2).sum()
    projected, share = projected[:, :2], share[:2]
    if projected.shape[1] < 2:
        projected, share = torch.nn.functional.pad(projected, (0, 1)), torch.nn.functional.pad(share, (0, 1))
    # Either end of a direction may come first: the occurrence that lies furthest out is on the positive side.
    furthest = projected.gather(0, projected.abs().argmax(0, keepdim=True))
    return projected * torch.where(furthest < 0, -1.0, 1.0), share


def neighbors(trace: ResidualTrace, vector: Tensor, stage: str, count: int) -> list[tuple[int, float]]:
    """The words whose own vectors lie nearest to one of a stage, and the cosines with them.

    At the end these are the vectors that logits are taken with; before it, the static ones.
    """
    network = trace.network
    vectors = network.unembedding.weight if stage == "final" else network.embedding.weight
    best = (normalize(vectors.float(), dim=-1) @ normalize(vector.float(), dim=-1)).topk(
        min(count, len(vectors))
    )
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
