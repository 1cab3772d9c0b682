"""Which earlier tokens determine the next word: attribution and ablation, side by side."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.paths import LinearReadout
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.sweep import variants
from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Result, Table
from clearhead.language_model import LanguageModel

LIKELIEST = 8


@torch.no_grad()
def run(sentence: str, word: str, model: LanguageModel) -> Result:
    """Explain the prediction of the word's first token; a space precedes the word. Tokens whose ablation lowers its
    probability most come first."""
    sentence = sentence.rstrip()
    trace = need_heads(model.inspect(sentence), "the blank lab")
    if len(trace) < 2:
        raise UserError(f"sentence = {sentence!r}: expected at least two tokens")
    token = _first_token(model, word)
    chances = trace.read("logits", rows=-1)[0].log_softmax(-1)
    brought, own = _attribute(trace, token)
    silenced = _ablate(trace, token) - chances[token]
    rows = [f"{i} {piece}" for i, piece in enumerate(trace.tokens)]
    order = silenced.argsort().tolist()
    lowest = int(silenced[:-1].argmin())
    likeliest = chances.topk(min(LIKELIEST, len(chances)))
    pieces = model.tokenizer.pieces(likeliest.indices.tolist())
    return Result(
        lab="blank",
        settings={"sentence": sentence, "word": word},
        findings={
            "token": model.tokenizer.pieces([token])[0],
            "its probability": chances[token].exp().item(),
            "its logit": trace.read("logits", rows=-1, columns=token).item(),
            "attributed to all tokens": brought.sum().item(),
            "attributed to the last position itself": own,
            "largest attribution, before the last": rows[int(brought[:-1].argmax())],
            "lowered most by ablating, before the last": rows[lowest] if silenced[lowest] < 0 else "no token",
        },
        parts=[
            Table(
                "attribution and ablation by token",
                [rows[i] for i in order],
                ["attribution to the logit", "change in log-probability when ablated"],
                torch.stack((brought, silenced), dim=1)[order].tolist(),
                shaded=True,
            ),
            Table(
                "most likely",
                [f"{piece!r}" for piece in pieces],
                ["probability"],
                [[value] for value in likeliest.values.exp().tolist()],
            ),
        ],
    )


def _first_token(model: LanguageModel, word: str) -> int:
    if not word.strip():
        raise UserError("`word` is empty: expected the word for the blank, such as her")
    return model.tokenizer.encode(" " + word.strip())[0]


def _attribute(trace: Trace, token: int) -> tuple[Tensor, float]:
    """The contribution of all heads at the last position to the logit, by source position, and the rest."""
    readout = LinearReadout.of_logit(trace, token, len(trace) - 1)
    brought = sum((readout.by_position(i).sum(0) for i in range(trace.config.n_block)), torch.zeros(()))
    parts = trace.attribute(token)
    heads = torch.tensor([".head." in name for name in parts.names])
    return brought.cpu(), parts.values.cpu()[~heads].sum().item()


def _ablate(trace: Trace, token: int) -> Tensor:
    """The token's log-probability with each position's vector ablated at the input of the first block."""
    found = [
        batch.read("logits", rows=-1)[:, 0].log_softmax(-1)[:, token]
        for _, batch in variants(trace, "block × position", blocks=[0])
    ]
    return torch.cat(found).cpu()
