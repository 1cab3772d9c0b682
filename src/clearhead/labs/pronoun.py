"""Which word a pronoun stands for: who looks where, in a model that sees only what came before."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.state_trace import need_heads
from clearhead.labs.lab import Lines, Result, Table, Value
from clearhead.language_model import LanguageModel


def run(
    before: str, first: str, second: str, one: str, other: str, pronoun: str, model: LanguageModel
) -> Result:
    """The weights of all heads, summed: from the last word and from the pronoun, to the one and the other."""
    config = model.transformer("a pronoun that looks").config
    if not config.causal:
        raise UserError("this model sees both ways: the lab is about one that sees only what came before")
    words, sides = (first.strip(), second.strip()), (one.strip(), other.strip())
    if words[0] == words[1]:
        raise UserError(f"first and second are both {words[0]!r}: expected two different words")
    texts = [f"{before.rstrip()} {word}." for word in words]
    from_word = [_looks(model, text, word, sides) for text, word in zip(texts, words, strict=True)]
    from_pronoun = [_looks(model, text, pronoun.strip(), sides) for text in texts]
    leans = [(looks[:, 0] - looks[:, 1]) for looks in from_word]  # by block
    apart = (from_pronoun[0] - from_pronoun[1]).abs().max().item()
    rows = [f"{pronoun}, then {word}" for word in words]
    columns = [f"to {side}" for side in sides] + ["difference"]
    return Result(
        lab="pronoun",
        settings={
            "before": before,
            "first": first,
            "second": second,
            "one": one,
            "other": other,
            "pronoun": pronoun,
        },
        found={
            **{
                f"{word}: to {one} less to {other}": lean.sum().item()
                for word, lean in zip(words, leans, strict=True)
            },
            f"largest difference of {pronoun} between the two": apart,
        },
        parts=[
            Table("from the last word", list(words), columns, _summed(from_word)),
            Table("from the pronoun", rows, columns, _summed(from_pronoun)),
            Lines(
                f"to {one} less to {other}",
                "block",
                "weight, summed over heads",
                [float(i) for i in range(config.n_block)],
                {word: lean.tolist() for word, lean in zip(words, leans, strict=True)},
            ),
        ],
    )


def _looks(model: LanguageModel, text: str, word: str, sides: tuple[str, str]) -> Tensor:
    """From a word's last place to the one and to the other, all heads of a block summed: blocks × 2."""
    trace = need_heads(model.inspect(text), "the lab pronoun")
    looking, places = trace.positions_of(word)[-1], [trace.positions_of(side)[0] for side in sides]
    if looking < max(places):
        raise UserError(f"{sides[places[1] == max(places)]!r} stands after what looks: it cannot be seen")
    found = [trace.weights(i)[:, looking, places].sum(0) for i in range(trace.config.n_block)]
    return torch.stack(found).cpu()


def _summed(looks: list[Tensor]) -> list[list[Value]]:
    return [[*each.sum(0).tolist(), (each[:, 0] - each[:, 1]).sum().item()] for each in looks]
