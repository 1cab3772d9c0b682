"""Writing through a window that slides: what was in sight at each step, and what was written."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from clearhead.errors import UserError
from clearhead.labs.lab import Result, Table, Value
from clearhead.language_model import LanguageModel


def run(prompt: str, context: int, tokens: int, model: LanguageModel) -> Result:
    """The likeliest token each time; beside it, what the model writes that sees all of the text."""
    most = model.config.n_context
    if context > most:
        raise UserError(f"context = {context}: this model sees {most} tokens, expected at most as many")
    narrow = _narrow(model, context)
    start = model.tokenizer.start_ids + model.tokenizer.encode(prompt)
    text = narrow.generate(start, tokens, temperature=0)
    whole = model.generate(start, tokens, temperature=0)
    told: list[list[Value]] = []
    alone, changes = [], []
    for step, written in enumerate(text.ids):
        ids = start + text.ids[:step]
        seen = ids[-context:]
        told.append([*(_show("".join(model.tokenizer.pieces(each))) for each in (seen, [written]))])
        logits = model.logits(seen)[-1]
        alone.append(logits.argmax().item() == written)
        if ids[:-context]:
            other = narrow.generate([*reversed(ids[:-context]), *seen], 1, temperature=0, log_probabilities=0)
            changes.append(abs(other.log_probabilities[0] - logits.log_softmax(-1)[written].item()))
            alone[-1] &= other.ids == [written]
    return Result(
        lab="window",
        settings={"prompt": prompt, "context": context, "tokens": tokens},
        found={
            "what is in sight alone gives the same": all(alone),
            "steps at which something was out of sight": len(changes),
            "largest change when that is turned round": max(changes, default=None),
        },
        parts=[
            Table(
                "step by step",
                [str(step) for step in range(len(told))],
                ["in sight", "written"],
                told,
            ),
            Table(
                "what was written",
                [f"{context} tokens in sight", "all in sight"],
                ["text"],
                [[_show(text)], [_show(whole)]],
            ),
        ],
    )


def _narrow(model: LanguageModel, context: int) -> LanguageModel:
    """The same weights with a shorter context."""
    network = copy(model.network)
    network.config = replace(network.config, n_context=context)
    return LanguageModel(network, model.tokenizer)


def _show(text: str) -> str:
    return text.replace("\n", "⏎")
