"""Two heads that complete A B … A with B, on streams of one-hot letters, as on the page (`inductionCircuit.ts`).

Shapes: T tokens, V letters. The first token is the start of the text, which is not a letter.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.model.attention_steps import compare, mask, mix, softmax
from clearhead.model.mask import causal_matrix

LETTERS = "ABCD"
BOOST = 10  # of the keys, and of the logits of the prediction


@dataclass(frozen=True)
class InductionSteps:
    """The three parts of every stream, T V each, what the induction head attends to, and the prediction."""

    own: Tensor  # the token's letter
    before: Tensor  # written by the previous-token head: the letter before the token
    copied: Tensor  # written by the induction head: the letter that followed
    weights: Tensor  # of the induction head: T T
    prediction: Tensor  # the probability of each letter after the last token: V


def run_induction(sequence: str, previous: bool = True, induction: bool = True) -> InductionSteps:
    """The circuit on a sequence of letters; a head that is switched off writes zeros."""
    own = torch.tensor([[float(letter == token) for letter in LETTERS] for token in ["", *sequence]]).double()
    T = len(own)
    just_before = torch.eye(T, dtype=own.dtype).roll(-1, dims=1).tril(-1)  # a 1 at the previous position
    before = previous * mix(_attention(BOOST * just_before), own)
    weights = _attention(BOOST * compare(own, before))
    copied = induction * mix(weights, own)
    return InductionSteps(own, before, copied, weights, softmax(BOOST * copied[-1]))


def _attention(scores: Tensor) -> Tensor:
    return softmax(mask(scores, causal_matrix(*scores.shape)))
