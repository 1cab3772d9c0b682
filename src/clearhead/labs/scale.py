"""Why divide by √d_k: the largest softmax weight over random dot products, as the vectors grow."""

from __future__ import annotations

import torch

from clearhead.labs.lab import Lines, Result

SMALLEST = 2


def run(keys: int, widest: int, samples: int, seed: int) -> Result:
    """Measure the mean largest weight and mean slope of the softmax by width, with and without the division."""
    random = torch.Generator().manual_seed(seed)
    widths = [SMALLEST << i for i in range(20) if SMALLEST << i <= widest]
    largest: dict[str, list[float | None]] = {"undivided": [], "divided by √d_k": []}
    slopes: dict[str, list[float | None]] = {name: [] for name in largest}
    apart: list[float | None] = []
    for d in widths:
        queries = torch.randn(samples, d, generator=random)
        vectors = torch.randn(samples, keys, d, generator=random)
        scores = torch.einsum("nd,nkd->nk", queries, vectors)
        apart.append(scores.std().item())
        for name, each in (("undivided", scores), ("divided by √d_k", scores / d**0.5)):
            weights = each.softmax(-1)
            largest[name].append(weights.amax(-1).mean().item())
            slopes[name].append((weights * (1 - weights)).mean().item())
    x = [float(d) for d in widths]
    undivided, divided = largest.values()
    return Result(
        lab="scale",
        settings={"keys": keys, "widest": widest, "samples": samples, "seed": seed},
        findings={
            "largest weight, undivided": undivided[-1],
            "largest weight, divided": divided[-1],
            "spread of the scores / √d": (apart[-1] or 0) / widths[-1] ** 0.5,
        },
        parts=[
            Lines("largest weight", "d", "mean largest weight", x, largest, logarithmic=True),
            Lines("slope", "d", "mean of w (1 − w)", x, slopes, logarithmic=True),
            Lines("spread", "d", "spread of the scores", x, {"scores": apart}, logarithmic=True),
        ],
    )
