"""Speculative decoding: a drafter proposes the next few tokens, and the model checks them in one forward pass.

Each token is still sampled from the model's own logits, with the random number of its step. A proposal that is equal
to the sampled token only saves a forward pass, so the text is that of plain decoding, up to the rounding of a matrix
product with more rows.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram import NGram, Order
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.errors import UserError
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.sampler import SampledToken, Sampler
from clearhead.text.inputs import read_documents
from clearhead.text.token_cache import tokenize
from clearhead.text.tokenizer import Tokenizer

REPEATS = "repeats"
ORDER = 5  # of the n-grams of a text
FIRST_COUNT, MOST_PROPOSED = 2, 8  # tokens
LONGEST_MATCH, SHORTEST_MATCH = 6, 2  # tokens before a repetition
LONGEST_SHOWN = 60  # characters of a wrong path
LEAST_PROBABILITY = 0.3  # of a proposed token in the n-gram model


class Drafter(Protocol):
    """Proposes tokens that may follow."""

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        """Propose up to `count` tokens to follow `ids`, which extend those of the previous call."""
        ...


class RepetitionDrafter:
    """Proposes what followed when the latest tokens last occurred, in the prompt or in the text so far."""

    def __init__(self) -> None:
        self.after: dict[tuple[int, ...], int] = {}  # the position after the last occurrence of an n-gram
        self.length = 0  # tokens whose n-grams are in `after`, except those that end with the last token

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        for end in range(self.length, len(ids)):
            for n in range(SHORTEST_MATCH, min(LONGEST_MATCH, end) + 1):
                self.after[tuple(ids[end - n : end])] = end
        self.length = len(ids)
        for n in range(min(LONGEST_MATCH, len(ids)), SHORTEST_MATCH - 1, -1):
            start = self.after.get(tuple(ids[-n:]))
            if start is not None:
                return list(ids[start : start + count])
        return []


class NGramDrafter:
    """Proposes the most probable continuation in an n-gram model with the same tokens, while it is probable enough."""

    def __init__(self, network: NGram) -> None:
        self.n_vocab, self.order = network.config.n_vocab, network.config.order
        orders = [order for order in network.orders[1:] if isinstance(order, Order)]
        self.keys = [order.keys.cpu().numpy() for order in orders if order.keys is not None]
        self.log_probabilities = [order.log_probability.cpu().numpy() for order in orders]

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        proposed: list[int] = []
        context = list(ids[1 - self.order :]) if self.order > 1 else []
        while len(proposed) < count and (token := self._continue(context)) is not None:
            proposed.append(token)
            context = [*context, token][1 - self.order :]
        return proposed

    def _continue(self, context: Sequence[int]) -> int | None:
        """The most probable token after the longest suffix of the context that occurs in the text."""
        for start in range(len(context)):
            node = self._find(context[start:])
            if node is None:
                continue
            order = len(context) - start - 1
            first, end = np.searchsorted(self.keys[order], (node * self.n_vocab, (node + 1) * self.n_vocab))
            if first < end:
                best = first + int(self.log_probabilities[order][first:end].argmax())
                probable = self.log_probabilities[order][best] >= math.log(LEAST_PROBABILITY)
                return int(self.keys[order][best] % self.n_vocab) if probable else None
        return None

    def _find(self, tokens: Sequence[int]) -> int | None:
        """The index of an n-gram; None if it never occurs."""
        node = tokens[0]
        for keys, token in zip(self.keys, tokens[1:], strict=False):
            key = node * self.n_vocab + token
            node = int(np.searchsorted(keys, key))
            if node == len(keys) or keys[node] != key:
                return None
        return node


# The version of the text that was last counted with each tokenizer, and its drafter: often one text drafts many.
_LATEST: WeakKeyDictionary[Tokenizer, tuple[object, NGramDrafter]] = WeakKeyDictionary()


def make_drafter(draft: object, tokenizer: Tokenizer, n_vocab: int) -> Drafter:
    """The drafter for "repeats", for an n-gram network, or for the path of a text, whose n-grams are counted."""
    if draft == REPEATS:
        return RepetitionDrafter()
    if isinstance(draft, NGram):
        if draft.config.n_vocab != n_vocab:
            raise UserError(
                f"the drafting model has {draft.config.n_vocab:,} tokens, but the model has {n_vocab:,}: "
                "expected an n-gram model with the same tokenizer"
            )
        return NGramDrafter(draft)
    if not isinstance(draft, str | Path):
        raise UserError(f"draft = {draft!r}: expected {REPEATS!r}, the path of a text, or an n-gram model")
    name = str(draft)
    if not os.path.isfile(name):  # noqa: PTH113 (Path.is_file raises for a name that is too long)
        what = "a folder" if os.path.isdir(name) else "no such file"  # noqa: PTH112
        shown = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"
        raise UserError(f"draft = {shown!r}: {what}; expected {REPEATS!r} or the path of a text")
    state = Path(name).stat()
    version = (Path(name).resolve(), state.st_ino, state.st_size, state.st_mtime_ns, n_vocab)
    known = _LATEST.get(tokenizer)
    if known is None or known[0] != version:
        known = _LATEST[tokenizer] = (version, _count(Path(name), tokenizer, n_vocab))
    return known[1]


def _count(text: Path, tokenizer: Tokenizer, n_vocab: int) -> NGramDrafter:
    with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
        tokens = tokenize(read_documents(text), tokenizer, Path(cache))
        end = tokenizer.need_end("`draft` from a text")
        return NGramDrafter(estimate(count_ngrams(tokens, n_vocab, end, ORDER)))


def generate_drafted_tokens(
    decoder: TransformerDecoder, prompt: Sequence[int], sampler: Sampler, drafter: Drafter
) -> Iterator[list[SampledToken]]:
    """Like `generate_tokens` for one sample, with a forward pass for several tokens at once.

    Once the context is full, every token needs a separate forward pass.
    """
    ids, proposed, count = list(prompt), list[int](), FIRST_COUNT
    logits = decoder.prefill(torch.tensor([ids]))
    while True:
        accepted = 0
        for row in logits:
            token = sampler.sample(row)
            ids.append(token.id)
            drafted = accepted < len(proposed) and token.id == proposed[accepted]
            yield [replace(token, drafted=drafted)]
            if not drafted:
                break
            accepted += 1
        decoder.rewind(len(proposed) - accepted)
        count = min(MOST_PROPOSED, count + 2) if accepted == len(proposed) else max(1, count - 1)
        # The last sampled token and the proposed ones must fit into the cache.
        free = decoder.cache.size - len(ids)
        proposed = drafter.propose(ids, min(count, free)) if free > 0 else []
        logits = (
            decoder.check(torch.tensor([[ids[-1], *proposed]]))
            if proposed
            else decoder.decode_one(torch.tensor([ids[-1:]]))
        )
