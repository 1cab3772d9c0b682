"""Vectors of words: one word in many sentences as a map, and the words that lie nearest to a vector.

Shapes: N occurrences, S stages, C features of the stream, V words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clearhead.errors import UserError
from clearhead.model.config import Config
from clearhead.networks import LearnerConfig

if TYPE_CHECKING:
    from clearhead.inspect.read_text import ReadText
    from clearhead.inspect.trace import Trace


def stages(config: LearnerConfig) -> list[str]:
    """The static vector, the contextual one entering each block, and the one at the end.

    Of a recurrent network the static vector and the state of each block; the last is the one at the end.
    """
    if not isinstance(config, Config):
        return ["embedding", *(f"block.{i}.state" for i in range(config.n_block))]
    return ["embedding", *(f"block.{i}.input" for i in range(config.n_block)), "final"]


@dataclass(frozen=True)
class Senses:
    """Where a word stands, as (text, position), and what its vectors are like at every stage."""

    places: list[tuple[int, int]]
    points: Tensor  # S N 2: on the two directions in which they differ most
    shares: Tensor  # S 2: of how they differ, what each of the two shows
    cosines: Tensor  # S N N


def map_senses(traces: Sequence[ReadText], word: str) -> Senses:
    """Every occurrence of a word in these texts; texts without it are left out."""
    places = []
    for number, trace in enumerate(traces):
        try:
            places += [(number, position) for position in trace.positions_of(word)]
        except UserError:
            continue
    if len(places) < 2:
        found = "once" if places else "nowhere"
        message = f"{word!r} stands {found} in these texts: expected it twice at least"
        raise UserError(message, "word_seldom", word=word, count=len(places))
    points, shares, cosines = [], [], []
    for stage in stages(traces[0].config):
        vectors = torch.stack([traces[number].read(stage, rows=at)[0] for number, at in places]).float()
        unit = normalize(vectors, dim=-1)
        cosines.append(unit @ unit.T)
        on, share = _principal(vectors)
        points.append(on)
        shares.append(share)
    return Senses(places, torch.stack(points), torch.stack(shares), torch.stack(cosines))


def _principal(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """N C → N 2, and the share of the variance that each direction shows; of alike vectors nothing."""
    centred = vectors - vectors.mean(0)
    if centred.norm() <= 1e-5 * vectors.norm():
        return vectors.new_zeros(len(vectors), 2), vectors.new_zeros(2)
    left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
    on, share = left * sizes, sizes**2 / (sizes**2).sum()
    on, share = on[:, :2], share[:2]
    if on.shape[1] < 2:
        on, share = torch.nn.functional.pad(on, (0, 1)), torch.nn.functional.pad(share, (0, 1))
    # Either end of a direction may come first: the occurrence that lies furthest out is on the positive side.
    furthest = on.gather(0, on.abs().argmax(0, keepdim=True))
    return on * torch.where(furthest < 0, -1.0, 1.0), share


def neighbours(trace: Trace, vector: Tensor, stage: str, count: int) -> list[tuple[int, float]]:
    """The words whose own vectors lie nearest to one of a stage, and the cosines with them.

    At the end these are the vectors that logits are taken with; before it, the static ones.
    """
    network = trace.network
    own = network.unembedding.weight if stage == "final" else network.embedding.weight
    best = (normalize(own.float(), dim=-1) @ normalize(vector.float(), dim=-1)).topk(min(count, len(own)))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
