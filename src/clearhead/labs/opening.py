"""The text and head to open a model with, chosen by measuring which show the most about it.

A sentence from the lectures or the stories qualifies if the model has a token for each of its words. The score of a
sentence is the attention weight of the best head from the pronoun to its antecedent, times the probability that the
next token is not the likeliest one: the screen then shows a head with a clear role, and a prediction that is not
certain. If no sentence qualifies, the model opens on a text that it generates or, if it is hardly trained and would
generate random characters, on a short example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from clearhead.errors import UserError
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.text.examples import CHICKEN, as_tokenized, examples_for, has_whole_words
from clearhead.text.tokenizer import Tokenizer

Role = Literal["antecedent", "induction", "previous"]

# A text, its last pronoun and the antecedent.
SENTENCES = (
    (CHICKEN, "it", "chicken"),
    ("Ella lived near the village. She had a trumpet, and it was", "it", "trumpet"),
    ("The trumpet didn't fit in the bucket because it was too", "it", "trumpet"),
)
GOOD = 0.5  # from this score on, no other sentence is tried
CLEAR = 0.4  # the smallest weight at which a role is recognizable
# Bits per byte: the entropy of a model's predictions for its own text, above which that text is gibberish. Small
# models of stories and of licenses reach 3 after about 50 steps, and are between 0.5 and 2.6 when trained.
GIBBERISH = 3.0
OWN_TOKENS = 16  # of a text that the model generates: as many as one screen shows


@dataclass(frozen=True)
class Opening:
    """A text, the head to look at with its role and mean weight, and the token to look from."""

    text: str
    row: int
    block: int
    head: int
    role: Role | None  # None if no head has a clear one
    weight: float
    score: float = 0.0


def find_opening(model: LanguageModel, check: Callable[[], object] = lambda: None) -> Opening:
    """Choose the text and the head. `check` is called before each sentence: an exception from it stops the search."""
    best: Opening | None = None
    for sentence, pronoun, antecedent in SENTENCES:
        check()
        text = as_tokenized(model.tokenizer, sentence)
        if text is None or not has_whole_words(model.tokenizer, text):
            continue
        try:
            trace = need_heads(model.inspect(text), "a head")
            places = trace.positions_of(pronoun)[-1], trace.positions_of(antecedent)[0]
        except UserError:  # too long for the context
            continue
        found = _open(text, trace, places)
        if best is None or found.score > best.score:
            best = found
        if best.score >= GOOD:
            break
    return best or _open_own_text(model)


def find_head(trace: Trace, heads: Sequence[tuple[int, int]] | None = None) -> Opening:
    """Choose the head with the clearest role in a given text, among `heads` or all heads."""
    return _open("".join(trace.tokens), trace, _antecedent(trace), heads)


def _antecedent(trace: Trace) -> tuple[int, int] | None:
    """The positions of a pronoun and its antecedent, if the text contains such a pair from the sentences."""
    for _, pronoun, antecedent in SENTENCES:
        try:
            places = trace.positions_of(pronoun)[-1], trace.positions_of(antecedent)[0]
        except UserError:  # not in this text
            continue
        if places[1] < places[0]:
            return places
    return None


def _open_own_text(model: LanguageModel) -> Opening:
    """Open on a line that the model generates, up to where it is least certain of what follows, or on an example."""
    tokenizer = model.tokenizer
    most = min(OWN_TOKENS, model.config.n_context // 2)
    text = as_tokenized(tokenizer, _own_line(model)) or tokenizer.pieces([tokenizer.letter or 0])[0]
    ids = tokenizer.start_ids + tokenizer.encode(text)[:most]
    pieces = tokenizer.pieces(ids)
    trace = need_heads(model.inspect(ids), "a head")
    if _bits_per_byte(trace, tokenizer.decode(ids)) > GIBBERISH and (example := _example(tokenizer, most)):
        return _open(example, need_heads(model.inspect(example), "a head"), None)
    certain = trace.logits.float().softmax(-1).amax(-1)
    n = len(ids)
    # After a word, not within it.
    ends = [t for t in range(n // 2, n - 1) if not (pieces[t][-1:] + pieces[t + 1][:1]).isalpha()]
    last = min(ends, key=lambda t: certain[t].item(), default=n - 1)
    text = tokenizer.decode(ids[: last + 1])
    return _open(text, need_heads(model.inspect(text), "a head"), None)


def _own_line(model: LanguageModel) -> str:
    """The longest line of a text that the model generates, without its first word, which may be cut off."""
    if not model.config.causal:
        return ""
    text = str(model.generate(tokens=3 * OWN_TOKENS, temperature=0.7, seed=0)).lstrip()
    lines = text[text.find(" ") + 1 :].splitlines()
    return max(lines, key=len, default="").strip()


def _bits_per_byte(trace: Trace, text: str) -> float:
    """The entropy of the model's predictions, which is high for a model that has hardly been trained."""
    log_probabilities = trace.logits.double().log_softmax(-1)
    entropy = -(log_probabilities.exp() * log_probabilities).nansum().item()
    return entropy / math.log(2) / max(1, len(text.encode()))


def _example(tokenizer: Tokenizer, most: int) -> str | None:
    """The longest example of at most `most` tokens."""
    return max(examples_for(tokenizer, most), key=lambda text: len(tokenizer.encode(text)), default=None)


def _open(
    text: str,
    trace: Trace,
    places: tuple[int, int] | None,
    heads: Sequence[tuple[int, int]] | None = None,
) -> Opening:
    """The head with the clearest role in this text; the most informative role comes first."""
    weights = torch.stack([trace.weights(i).float().cpu() for i in range(trace.config.n_block)])
    if heads is not None:
        allowed = torch.zeros(weights.shape[:2], dtype=torch.bool)
        for block, head in heads:
            allowed[block, head] = True
        weights[~allowed] = 0
    rest = 1 - trace.read("logits", rows=-1)[0].float().softmax(-1).max().item()
    pairs: dict[Role, list[tuple[int, int]]] = {
        "antecedent": [] if places is None else [places],
        "induction": [(now, before + 1) for now, before in _repeats(trace.ids[0].tolist())],
        "previous": [(now, now - 1) for now in range(2, len(trace))],
    }
    # For each role, the weight of each head from each token: blocks × heads × pairs.
    roles = {
        role: torch.stack([weights[:, :, i, j] for i, j in each], -1) for role, each in pairs.items() if each
    }
    first = next(iter(roles.values()), None)
    score = 0.0 if first is None else rest * first.mean(-1).max().item()
    for role, table in roles.items():
        means = table.mean(-1)
        block, head = divmod(int(means.argmax()), means.shape[1])
        if (weight := means.max().item()) >= CLEAR:
            row, _ = pairs[role][int(table[block, head].argmax())]
            return Opening(text, row, block, head, role, weight, score)
    block, head = heads[0] if heads else (0, 0)
    return Opening(text, -1, block, head, None, 0.0, score)


def _repeats(ids: list[int]) -> list[tuple[int, int]]:
    """The positions of tokens that occurred before, and of their previous occurrences."""
    seen: dict[int, int] = {}
    found = []
    for now, token in enumerate(ids):
        if token in seen and seen[token] + 1 < now:
            found.append((now, seen[token]))
        seen[token] = now
    return found
