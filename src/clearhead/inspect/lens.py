"""The lens: what the model would say next if it stopped after each block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace


class Lens:
    """`lens[k]` are the logits after block k: T V. The last is the model's own answer."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __len__(self) -> int:
        return self.trace.config.n_block

    def __getitem__(self, block: int) -> Tensor:
        network = self.trace.network
        with torch.set_grad_enabled(self.trace.grad):
            return network.unembedding(network.final_norm(self.trace.read(f"block.{block}.output")))

    def words(self, position: int = -1, count: int = 5) -> list[list[tuple[str, float]]]:
        """For each block the likeliest next words at a position, with their probability."""
        answers = []
        for k in range(len(self)):
            best = self[k][position].softmax(-1).topk(count)
            words = self.trace.words(best.indices.tolist())
            answers.append(list(zip(words, best.values.tolist(), strict=True)))
        return answers
