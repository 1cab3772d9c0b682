"""Generating through a sliding window: the visible tokens at each step, and the generated one."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from clearhead.errors import UserError
from clearhead.labs.lab import Result, Table, Value
from clearhead.language_model import LanguageModel


def run(prompt: str, context: int, tokens: int, model: LanguageModel) -> Result:
    """Decode greedily, and compare with the output of the model with the whole text as context."""
    most = model.transformer("a window").config.n_context
    if not prompt:
        raise UserError("`prompt` is empty: expected at least one character")
    if context > most:
        raise UserError(f"context = {context}: expected at most this model's context of {most} tokens")
    narrow = _narrow(model, context)
    start = model.tokenizer.start_ids + model.tokenizer.encode(prompt)
    text = narrow.generate(start, tokens, temperature=0)
    whole = model.generate(start, tokens, temperature=0)
    rows: list[str] = []
    shown: list[list[Value]] = []
    alone, changes = [], []
    unseen = max(0, len(start) - context)  # tokens before w1, the first visible one
    for step, written in enumerate(text.ids):
        ids = start + text.ids[:step]
        seen = ids[-context:]
        rows.append(_label(len(ids) - len(seen) - unseen + 1, len(ids) - unseen))
        shown.append([*(_show("".join(model.tokenizer.pieces(each))) for each in (seen, [written]))])
        logits = model.logits(seen)[-1]
        alone.append(logits.argmax().item() == written)
        if ids[:-context]:
            other = narrow.generate([*reversed(ids[:-context]), *seen], 1, temperature=0, log_probabilities=0)
            changes.append(abs(other.log_probabilities[0] - logits.log_softmax(-1)[written].item()))
            alone[-1] &= other.ids == [written]
    return Result(
        lab="window",
        settings={"prompt": prompt, "context": context, "tokens": tokens},
        findings={
            "same output from the visible tokens alone": all(alone),
            "steps with tokens outside the window": len(changes),
            "largest change in log-probability with the tokens outside reversed": max(changes, default=None),
        },
        parts=[
            Table(
                "step by step",
                rows,
                ["visible", "generated"],
                shown,
            ),
            Table(
                "generated text",
                [f"context of {context} tokens", "whole text"],
                ["text"],
                [[_show(text)], [_show(whole)]],
            ),
        ],
    )


def _label(first: int, last: int) -> str:
    """One step in the lecture's notation, such as w1 … w8 → w9."""
    visible = f"w{last}" if first == last else f"w{first} … w{last}"
    return f"{visible} → w{last + 1}"


def _narrow(model: LanguageModel, context: int) -> LanguageModel:
    """The same weights with a shorter context."""
    network = copy(model.transformer())
    network.config = replace(network.config, n_context=context)
    return LanguageModel(network, model.tokenizer)


def _show(text: str) -> str:
    return text.replace("\n", "⏎")
