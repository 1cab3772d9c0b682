"""Masked prediction: the tokens that a bidirectional model puts in the blanks of a text."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.networks import Network
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import MASK

BLANK = re.compile(rf"{re.escape(MASK)}|_{{3,}}")

Candidates = list[tuple[str, float]]  # tokens and their probabilities, most probable first


@torch.inference_mode()
def fill_mask(network: Network, tokenizer: Tokenizer, text: str, count: int) -> list[Candidates]:
    """Return the `count` most probable tokens for each blank; a blank is one token.

    After a space, only tokens that begin with a space fit; they are returned without it.
    """
    if network.config.causal:
        raise UserError("this model is causal: it generates text and cannot fill in blanks")
    if tokenizer.mask_id is None:
        raise UserError(
            "this model's tokenizer has no mask token: the model was not trained to fill in blanks"
        )
    if count < 1:
        raise UserError(f"count = {count}: expected at least 1")
    parts = BLANK.split(text)
    if len(parts) == 1:
        raise UserError(f"the text has no blank: write ___ or {MASK} where a word is missing")
    # In a BPE vocabulary, the space before a word is part of its token.
    spaced = [tokenizer.kind == "bpe" and part.endswith(" ") for part in parts[:-1]]
    ids, positions = list(tokenizer.start_ids), []
    for part, has_space in zip(parts, [*spaced, False], strict=True):
        ids += [*tokenizer.encode(part[:-1] if has_space else part), tokenizer.mask_id]
        positions.append(len(ids) - 1)
    del ids[-1], positions[-1]  # no blank follows the last part
    device = next(network.parameters()).device
    logits = network(torch.tensor([ids], device=device))[0, positions].float().cpu()
    pieces = tokenizer.pieces(range(tokenizer.n_vocab))
    fits = [tokenizer.has_text(i) for i in range(tokenizer.n_vocab)]
    return [
        _most_probable(row[: len(pieces)], pieces, fits, has_space, count)
        for row, has_space in zip(logits.softmax(-1), spaced, strict=True)
    ]


def _most_probable(
    probabilities: Tensor, pieces: list[str], fits: list[bool], spaced: bool, count: int
) -> Candidates:
    candidates: Candidates = []
    for i in probabilities.argsort(descending=True).tolist():
        piece = pieces[i].removeprefix(" ") if spaced else pieces[i]
        if fits[i] and piece and (not spaced or pieces[i].startswith(" ")):
            candidates.append((piece, float(probabilities[i])))
        if len(candidates) == count:
            break
    return candidates
