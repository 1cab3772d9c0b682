"""Word senses: the vectors of one word across many texts, and the tokens nearest to a vector.

Shapes: N occurrences, S stages, C features of the stream, V tokens in the vocabulary.
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
    """The occurrences of a word as (text, position), and its vectors compared at every stage."""

    places: list[tuple[int, int]]
    points: Tensor  # S N 2: projections onto the first two principal components
    shares: Tensor  # S 2: the fraction of variance explained by each component
    cosines: Tensor  # S N N


def map_senses(traces: Sequence[BaseTrace], word: str) -> SenseMap:
    """Compare all occurrences of a word in these texts; texts without it are skipped."""
    places = []
    for number, trace in enumerate(traces):
        try:
            places += [(number, position) for position in trace.positions_of(word)]
        except UserError:
            continue
    if len(places) < 2:
        occurs = "occurs once" if places else "does not occur"
        message = f"{word!r} {occurs} in these texts: expected at least two occurrences"
        raise UserError(message, "word_too_rare", word=word, count=len(places))
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
    """Project onto the first two principal components, N C → N 2, with their shares of variance; 0 for equal
    vectors.
    """
    centered = vectors - vectors.mean(0)
    if centered.norm() <= 1e-5 * vectors.norm():
        return vectors.new_zeros(len(vectors), 2), vectors.new_zeros(2)
    left, sizes, _ = torch.linalg.svd(centered, full_matrices=False)
    projected, share = left * sizes, sizes**2 / (sizes**2).sum()
    projected, share = projected[:, :2], share[:2]
    if projected.shape[1] < 2:
        projected, share = torch.nn.functional.pad(projected, (0, 1)), torch.nn.functional.pad(share, (0, 1))
    # Fix the sign of each component: the (first) occurrence farthest out is on the positive side.
    distances = projected.abs()
    far = distances >= (1 - 1e-4) * distances.amax(0)
    furthest = projected.gather(0, far.int().argmax(0, keepdim=True))
    return projected * torch.where(furthest < 0, -1.0, 1.0), share


def neighbors(trace: ResidualTrace, vector: Tensor, stage: str, count: int) -> list[tuple[int, float]]:
    """Return the tokens whose vectors are nearest to a vector at a stage, with their cosines.

    At the final stage, the tokens' vectors are their unembedding vectors; before it, their static embeddings.
    """
    network = trace.network
    vectors = network.unembedding.weight if stage == "final" else network.embedding.weight
    best = (normalize(vectors.float(), dim=-1) @ normalize(vector.float(), dim=-1)).topk(
        min(count, len(vectors))
    )
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
