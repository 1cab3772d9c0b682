"""A head designed by hand for one relationship between kinds of words, as on the page (`relationshipHead.ts`).

Shapes: T words, K kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.lectures.inputs import inputs_of
from clearhead.model.attention_steps import compare, mask, project, softmax
from clearhead.model.mask import causal_matrix

KINDS: list[str] = inputs_of("002.10")["kinds"]
BOOST = 10  # of the keys, so that the softmax is sharp


def query_matrix(kind: str, sought: str) -> Tensor:
    """The W^Q of a head in which one kind of word looks for another: K K."""
    W_Q = torch.zeros(len(KINDS), len(KINDS), dtype=torch.float64)
    W_Q[KINDS.index(kind), KINDS.index(sought)] = 1
    return W_Q


def relate(W_Q: Tensor, kinds: Sequence[str]) -> Tensor:
    """The weights of the causal head on words of these kinds, whose features are one-hot: T T."""
    x = torch.eye(len(KINDS), dtype=W_Q.dtype)[[KINDS.index(kind) for kind in kinds]]
    return softmax(mask(compare(project(x, W_Q), BOOST * x), causal_matrix(len(x), len(x))))
