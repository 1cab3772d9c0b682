"""One causal head computed twice: as loops over tokens, and as matrix products."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from clearhead.labs.lab import Lines, Result
from clearhead.model.lectures import head_as_loops, head_as_matrices

FEWEST = 2


@torch.no_grad()
def run(longest: int, width: int, repeats: int, seed: int) -> Result:
    """Time both for two tokens, four, and so on up to `longest`, and compare their results."""
    random = torch.Generator().manual_seed(seed)
    W_Q, W_K, W_V = (torch.randn(width, width, generator=random) / width**0.5 for _ in range(3))
    counts = [FEWEST << i for i in range(20) if FEWEST << i <= longest]
    seconds: dict[str, list[float | None]] = {"loops": [], "matrices": []}
    ratios: list[float | None] = []
    apart: list[float | None] = []
    for count in counts:
        x = torch.randn(count, width, generator=random)
        slow, loops = time_run(partial(head_as_loops, x, W_Q, W_K, W_V), repeats)
        fast, matrices = time_run(partial(head_as_matrices, x, W_Q, W_K, W_V), repeats)
        seconds["loops"].append(slow)
        seconds["matrices"].append(fast)
        ratios.append(slow / fast)
        apart.append((loops - matrices).abs().max().item())
    lengths = [float(count) for count in counts]
    return Result(
        lab="matrix",
        settings={"longest": longest, "width": width, "repeats": repeats, "seed": seed},
        findings={
            "largest difference": max(each or 0.0 for each in apart),
            "speedup at the longest": ratios[-1],
        },
        parts=[
            Lines("time", "tokens", "seconds", lengths, seconds, logarithmic=True),
            Lines("speedup", "tokens", "times", lengths, {"matrices": ratios}, logarithmic=True),
            Lines(
                "difference",
                "tokens",
                "largest difference",
                lengths,
                {"of the numbers": apart},
                logarithmic=True,
            ),
        ],
    )


def time_run(compute: Callable[[], Tensor], repeats: int) -> tuple[float, Tensor]:
    """The time of the fastest of several runs after a warm-up, in seconds, and the result."""
    result, best = compute(), float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = compute()
        best = min(best, time.perf_counter() - start)
    return best, result
