"""The lectures' transformer block on vectors of three numbers, as on the page (`web/src/model/tinyBlock.ts`).

Shapes: T tokens, C numbers per vector.
"""

from __future__ import annotations

from torch import Tensor

from clearhead.model.attention_steps import attend
from clearhead.model.mask import causal_matrix


def z_scores(x: Tensor) -> Tensor:
    """Each vector minus its mean, divided by its standard deviation: T C → T C."""
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, correction=0)


def run_tiny_block(
    x: Tensor, gain: Tensor, shift: Tensor, W_1: Tensor, W_2: Tensor, relu: bool = True
) -> dict[str, Tensor]:
    """The lines x, t1 … t5 and h, each T C. The head has identity matrices, and the biases are zero."""
    t1 = gain * z_scores(x) + shift
    t2 = attend(t1, t1, t1, causal_matrix(len(x), len(x)))
    t3 = t2 + x
    t4 = gain * z_scores(t3) + shift
    hidden = t4 @ W_1
    t5 = (hidden.relu() if relu else hidden) @ W_2
    return {"x": x, "t1": t1, "t2": t2, "t3": t3, "t4": t4, "t5": t5, "h": t5 + t3}
