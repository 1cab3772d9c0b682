"""The n-gram model predicts a token from how often it followed the last few tokens, backing off to fewer.

The n-grams of each order are sorted by key. The key of an n-gram is the index of its prefix (all tokens but
the last) times the vocabulary size, plus the last token; the index of a unigram is its token id. So all
continuations of a context are adjacent, and unseen n-grams take no space.

Shapes: B sequences, T positions, V tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError

UNKNOWN = -1  # stands for the index of an n-gram that was never seen


class Order(nn.Module):
    """The n-grams of one order: keys, log-probabilities and log backoff weights.

    All orders but unigrams have `keys`; all but the highest have `backoff`.
    """

    keys: Tensor | None
    backoff: nn.Parameter | None

    def __init__(self, count: int, is_first: bool, is_last: bool) -> None:
        super().__init__()
        self.register_buffer("keys", None if is_first else torch.zeros(count, dtype=torch.int64))
        self.log_probability = nn.Parameter(torch.zeros(count), requires_grad=False)
        backoff = None if is_last else nn.Parameter(torch.zeros(count), requires_grad=False)
        self.register_parameter("backoff", backoff)

    def find(self, keys: Tensor, known: Tensor) -> Tensor:
        """The index of each key, or UNKNOWN."""
        assert self.keys is not None
        if not len(self.keys):
            return torch.full_like(keys, UNKNOWN)
        nodes = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return torch.where(known & (self.keys[nodes] == keys), nodes, UNKNOWN)


class NGram(nn.Module):
    """Token ids in, logits out, like every network; here, the logits are log-probabilities."""

    def __init__(self, config: NGramConfig) -> None:
        super().__init__()
        self.config = config
        sizes = (config.n_vocab, *config.counts)
        last = len(sizes) - 1
        self.orders = nn.ModuleList(Order(size, i == 0, i == last) for i, size in enumerate(sizes))

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """B T ids to B T V logits, or T ids to T V. `documents` (B T) numbers the documents of each row."""
        if ids.ndim == 1:
            return self(ids[None])[0]
        return self.predict(self.contexts(ids, documents))

    def contexts(self, ids: Tensor, documents: Tensor | None = None) -> list[Tensor]:
        """The index of the n-gram that ends at each position, for n from 1 to the longest context: B T each."""
        found = [ids]
        for order in self.orders[1:-1]:
            assert isinstance(order, Order)
            found.append(self._follow(found[-1], ids, order, documents))
        return found

    def predict(self, contexts: Sequence[Tensor]) -> Tensor:
        """The logits at all or some positions, given their contexts: B t each → B t V."""
        first = self.orders[0]
        assert isinstance(first, Order)
        logits = first.log_probability.expand(*contexts[0].shape, self.config.n_vocab).clone()
        for (shorter, longer), nodes in zip(pairwise(self.orders), contexts, strict=False):
            assert isinstance(shorter, Order)
            assert isinstance(longer, Order)
            self._put(logits, nodes, shorter, longer)
        return logits

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def window(self, ids: list[int]) -> list[int]:
        """The last ids that can influence the next token, at least one."""
        return ids[-max(1, self.config.order - 1) :]

    def _follow(self, nodes: Tensor, ids: Tensor, order: Order, documents: Tensor | None) -> Tensor:
        """The contexts extended by one token; none crosses the end of a document."""
        before, tokens = nodes[:, :-1], ids[:, 1:]
        known = (before != UNKNOWN) & (tokens != self.config.end_id)
        if documents is not None:
            known = known & (documents[:, 1:] == documents[:, :-1])
        found = order.find(before * self.config.n_vocab + tokens, known)
        return torch.cat([torch.full_like(ids[:, :1], UNKNOWN), found], dim=1)

    def _put(self, logits: Tensor, contexts: Tensor, shorter: Order, longer: Order) -> None:
        """Where a context is known, add its backoff weight to all logits, then set those of tokens seen after it."""
        assert shorter.backoff is not None
        assert longer.keys is not None
        if not len(shorter.backoff):
            return
        known, V = contexts != UNKNOWN, self.config.n_vocab
        logits += torch.where(known, shorter.backoff[contexts.clamp(min=0)], 0.0)[..., None]
        rows = known.flatten().nonzero()[:, 0]
        nodes = contexts.flatten()[rows]
        first = torch.searchsorted(longer.keys, nodes * V)
        many = torch.searchsorted(longer.keys, (nodes + 1) * V) - first
        ends = many.cumsum(0)
        total = int(ends[-1]) if len(ends) else 0
        steps = torch.arange(total, device=logits.device)
        seen = steps + (first - ends + many).repeat_interleave(many, output_size=total)
        places = rows.repeat_interleave(many, output_size=total) * V + longer.keys[seen] % V
        logits.view(-1)[places] = longer.log_probability[seen]

    def check(self) -> None:
        """Raise an error unless the tensors form a valid n-gram model; lookups rely on sorted keys."""
        V, below = self.config.n_vocab, self.config.n_vocab
        for n, order in enumerate(self.orders, start=1):
            assert isinstance(order, Order)
            keys = order.keys
            if keys is not None and len(keys):
                ascending = bool((keys[1:] > keys[:-1]).all())
                if not ascending or int(keys[0]) < 0 or int(keys[-1]) >= below * V:
                    raise UserError(f"the {n}-grams are not sorted, or lack prefixes: copy the model again")
            for tensor in (order.log_probability, order.backoff):
                if tensor is not None and not bool(tensor.isfinite().all()):
                    raise UserError(f"the {n}-grams have non-finite values: copy the model again")
            if bool((order.log_probability > 1e-4).any()):
                raise UserError(f"the {n}-grams have probabilities above 1: copy the model again")
            below = len(order.log_probability)
