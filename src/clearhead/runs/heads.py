"""Heads scored on the stories, where what each pronoun stands for is known."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.language_model import LanguageModel
from clearhead.text.stories import Span, story

SEED = 1  # of stories that the demo does not train on


def find_antecedents(model: LanguageModel, count: int) -> tuple[Tensor, float, int]:
    """How much of its weight each head puts on the antecedent, looking from the pronoun: blocks × heads.

    The mean over all pronouns of so many fresh stories; what a head that looks at all words alike would
    score; and how many pronouns those were.
    """
    alike, total, pronouns = 0.0, torch.zeros(model.config.n_block, model.config.n_head), 0
    for number in range(count):
        told = story(SEED, number)
        pairs = _positions(model, told.text, [(each.span, each.antecedent) for each in told.pronouns])
        trace = model.inspect(_within_context(model, told.text))
        for i in range(model.config.n_block):
            weights = trace.steps(i).weights[0].cpu()
            for pronoun, antecedent in pairs:
                total[i] += weights[:, pronoun, antecedent]
        alike += sum(1 / (pronoun + 1) for pronoun, _ in pairs)
        pronouns += len(pairs)
    return total / pronouns, alike / pronouns, pronouns


def _within_context(model: LanguageModel, text: str) -> str:
    return model.tokenizer.decode(model.tokenizer.encode(text)[: model.config.n_context])


def _positions(model: LanguageModel, text: str, pairs: list[tuple[Span, Span]]) -> list[tuple[int, int]]:
    """The positions of the last tokens of two spans of text, for those pairs that the context holds."""
    ends: list[int] = []
    for piece in model.tokenizer.pieces(model.tokenizer.encode(_within_context(model, text))):
        ends.append((ends[-1] if ends else 0) + len(piece))

    def position(span: Span) -> int | None:
        return next((i for i, end in enumerate(ends) if end >= span.stop), None)

    found = [(position(one), position(other)) for one, other in pairs]
    return [(one, other) for one, other in found if one is not None and other is not None]
