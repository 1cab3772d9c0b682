"""Filling in: which words a model that sees both ways would put in the blanks of a text."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.networks import Network
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import MASK

BLANK = re.compile(rf"{re.escape(MASK)}|_{{3,}}")

Filling = list[tuple[str, float]]  # words and their probabilities, the likeliest first


@torch.inference_mode()
def fill(network: Network, tokenizer: Tokenizer, text: str, count: int) -> list[Filling]:
    """For each blank, one token long, the words that put there make the text the model finds likeliest.

    After a space only words that begin with one fit, and they are given without it.
    """
    if network.config.causal:
        raise UserError("this model sees only what came before: it writes on and cannot fill in blanks")
    if tokenizer.mask_id is None:
        raise UserError("this model's tokenizer has no mask token: it was not trained to fill in blanks")
    if count < 1:
        raise UserError(f"count = {count}: expected at least 1")
    parts = BLANK.split(text)
    if len(parts) == 1:
        raise UserError(f"the text has no blank: write ___ or {MASK} where a word is missing")
    # In a bpe vocabulary a word brings the space before it.
    spaced = [tokenizer.kind == "bpe" and part.endswith(" ") for part in parts[:-1]]
    ids, places = list(tokenizer.start_ids), []
    for part, has_space in zip(parts, [*spaced, False], strict=True):
        ids += [*tokenizer.encode(part[:-1] if has_space else part), tokenizer.mask_id]
        places.append(len(ids) - 1)
    del ids[-1], places[-1]  # no blank follows the last part
    device = next(network.parameters()).device
    logits = network(torch.tensor([ids], device=device))[0, places].float().cpu()
    words = tokenizer.pieces(range(tokenizer.n_vocab))
    fits = [tokenizer.has_text(i) for i in range(tokenizer.n_vocab)]
    return [
        _likeliest(row[: len(words)], words, fits, has_space, count)
        for row, has_space in zip(logits.softmax(-1), spaced, strict=True)
    ]


def _likeliest(
    probabilities: Tensor, words: list[str], fits: list[bool], spaced: bool, count: int
) -> Filling:
    found: Filling = []
    for i in probabilities.argsort(descending=True).tolist():
        word = words[i].removeprefix(" ") if spaced else words[i]
        if fits[i] and word and (not spaced or words[i].startswith(" ")):
            found.append((word, float(probabilities[i])))
        if len(found) == count:
            break
    return found
