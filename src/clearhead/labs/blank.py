"""Which earlier tokens decide the next word: each is left out in turn; attributions show the direct contributions."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import read_logit
from clearhead.inspect.paths import LinearReadout
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.sweep import MAX_BATCH_TOKENS
from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Findings, Result, Table
from clearhead.language_model import LanguageModel

LIKELIEST = 8
SPLIT = "tokens of the word (only the first is explained)"


@torch.no_grad()
def run(sentence: str, word: str, other: str, model: LanguageModel) -> Result:
    """Explain the prediction of the word's first token; a space precedes the word. Tokens whose absence changes its
    probability most come first."""
    sentence = sentence.rstrip()
    trace = need_heads(model.inspect(sentence), "the blank lab")
    if len(trace) < 2:
        raise UserError(f"sentence = {sentence!r}: expected at least two tokens")
    if not word.strip():
        raise UserError("`word` is empty: expected the word for the blank, such as her")
    pieces = _encode(model, word)
    token = pieces[0]
    chances = trace.read("logits", rows=-1)[0].log_softmax(-1)
    brought, own = _attribute(trace, token)
    changes = _leave_out(model, trace, token) - chances[token].cpu()
    rows = [f"{i} {piece}" for i, piece in enumerate(trace.tokens)]
    order = changes.abs().argsort(descending=True).tolist()
    listed = chances.topk(min(LIKELIEST, len(chances))).indices.tolist()
    if other.strip():
        with suppress(UserError):  # a character-level model may lack one of its letters
            listed.append(_encode(model, other)[0])
    listed = sorted({*listed, token}, key=lambda each: -chances[each].item())
    logit = "its logit" if trace.config.logit_cap is None else "its logit before the cap"
    return Result(
        lab="blank",
        settings={"sentence": sentence, "word": word, "other": other},
        findings={
            "token": model.tokenizer.pieces([token])[0],
            **_split(model, pieces),
            "its probability": chances[token].exp().item(),
            "most influential token (except the last)": rows[int(changes[:-1].abs().argmax())],
            "its probability without that token": (chances[token].cpu() + _largest(changes[:-1]))
            .exp()
            .item(),
            "largest direct contribution (except the last token's)": rows[int(brought[:-1].abs().argmax())],
            logit: read_logit(trace, token, len(trace) - 1, None).item(),
            "contributed directly by all tokens": brought.sum().item(),
            "contributed by the last position itself": own,
        },
        parts=[
            Table(
                "effect of each token",
                [rows[i] for i in order],
                ["change in log-probability when left out", "direct contribution to the logit"],
                torch.stack((changes, brought), dim=1)[order].tolist(),
                shaded=True,
            ),
            Table(
                "candidates for the blank",
                [f"{piece!r}" for piece in model.tokenizer.pieces(listed)],
                ["probability"],
                [[chances[each].exp().item()] for each in listed],
            ),
        ],
    )


def _encode(model: LanguageModel, word: str) -> list[int]:
    return model.tokenizer.encode(" " + word.strip())


def _split(model: LanguageModel, pieces: list[int]) -> Findings:
    """A word of several tokens is not explained as a whole: the finding lists them."""
    if len(pieces) == 1:
        return {}
    return {SPLIT: ", ".join(f"{piece!r}" for piece in model.tokenizer.pieces(pieces))}


def _largest(values: Tensor) -> Tensor:
    return values[values.abs().argmax()]


def _attribute(trace: Trace, token: int) -> tuple[Tensor, float]:
    """The contribution of all heads at the last position to the logit, by source position, and the rest."""
    readout = LinearReadout.of_logit(trace, token, len(trace) - 1)
    brought = sum((readout.by_position(i).sum(0) for i in range(trace.config.n_block)), torch.zeros(()))
    parts = trace.attribute(token)
    heads = torch.tensor([".head." in name for name in parts.names])
    return brought.cpu(), parts.values.cpu()[~heads].sum().item()


def _leave_out(model: LanguageModel, trace: Trace, token: int) -> Tensor:
    """The token's log-probability after the text, with each of the text's tokens left out in turn."""
    ids = trace.ids[0]
    shorter = torch.stack([torch.cat((ids[:i], ids[i + 1 :])) for i in range(len(ids))])
    found = []
    for batch in torch.split(shorter, max(1, MAX_BATCH_TOKENS // len(ids))):
        logits = need_heads(model.inspect(batch), "the blank lab").read("logits", rows=-1)
        found.append(logits.reshape(len(batch), -1).log_softmax(-1)[:, token])
    return torch.cat(found).cpu()
