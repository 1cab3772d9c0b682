"""Scoring: the log-probability of each token of given texts.

Sequences of different lengths form one batch, padded on the right: every causal network ignores what follows. A batch
is processed a few columns at a time, so that the logits need little memory however large the vocabulary is, and an
engine can serve other requests in between. Numbers may differ in their last digits between batches of different shapes.

Shapes: B sequences, T positions, W columns of a chunk, N tokens to score in it, V tokens in the vocabulary, A
alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.generate.sampling import check_options
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.networks import (
    LOGITS_AT_ONCE,
    AnyConfig,
    Ensemble,
    EnsembleConfig,
    Network,
    log_mean,
    need_causal,
)

MOST_TOKENS = 4096  # of a batch, with padding; a longer sequence is a batch of its own

# Maps the next columns (B W) and a mask of those to predict from (B W, bool) to logits (N V).
ReadColumns = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ScoredToken:
    """A token of a given text, with what the model predicted at its position.

    The first token of a sequence has no log-probability, because nothing precedes it.
    """

    id: int
    log_probability: float | None = None
    greedy: bool | None = None  # whether greedy decoding would have chosen this token
    alternatives: tuple[tuple[int, float], ...] = ()  # the most probable ids, in order


@dataclass(frozen=True)
class ScoredText:
    """A text, or the part of it after a prefix, with the log-probability of each token."""

    tokens: tuple[ScoredToken, ...]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def log_probabilities(self) -> list[float | None]:
        return [token.log_probability for token in self.tokens]

    @property
    def log_probability(self) -> float:
        """The log-probability of the whole text, without that of its first token if nothing precedes it."""
        return sum(token.log_probability or 0.0 for token in self.tokens)

    @property
    def greedy(self) -> bool:
        """Whether greedy decoding would have given this text."""
        return all(token.greedy is not False for token in self.tokens)


class ScoringBatch:
    """Sequences that are scored together, chunk by chunk; `done` when all chunks have been run."""

    def __init__(
        self,
        network: Network,
        sequences: Sequence[Sequence[int]],
        first: Sequence[int] | None = None,
        top: int | None = None,
        with_next: bool = False,
    ) -> None:
        """`first` is where the text starts in each sequence, by default 0; `top` is the number of alternatives.

        With `with_next`, `next_logits` (V) of each sequence are those of the token that would follow it.
        """
        assert sequences
        assert all(sequences), "a sequence is empty"
        self.sequences, self.first, self.top = sequences, first or [0] * len(sequences), top
        self.next_logits: list[Tensor | None] = [None] * len(sequences)
        self._lengths = [len(ids) - (not with_next) for ids in sequences]  # tokens to process
        self._device = next(network.parameters()).device
        T = max(self._lengths)
        self._ids = torch.zeros(len(sequences), T, dtype=torch.long)
        self._wanted = torch.zeros(len(sequences), T, dtype=torch.bool)  # marks the tokens to predict from
        for row, (ids, n) in enumerate(zip(sequences, self._lengths, strict=True)):
            self._ids[row, :n] = torch.tensor(ids[:n], dtype=torch.long)
            self._wanted[row, max(0, self.first[row] - 1) : n] = True
        self._n_vocab = network.config.n_vocab
        self._read = _make_reader(network, len(sequences), T)
        self._position = 0
        self._found: list[dict[int, ScoredToken]] = [{} for _ in sequences]  # by index

    @property
    def done(self) -> bool:
        return self._position >= self._ids.shape[1]

    @torch.inference_mode()
    def run_chunk(self, most: int = MOST_TOKENS) -> int:
        """Process the next columns: at most this many tokens, but at least one column. Return the number of
        tokens.
        """
        B = len(self.sequences)
        W = max(1, min(most, LOGITS_AT_ONCE // self._n_vocab) // B)
        columns = slice(self._position, self._position + W)
        ids, wanted = self._ids[:, columns], self._wanted[:, columns]
        logits = self._read(ids.to(self._device), wanted.to(self._device))
        places = [(row, self._position + column) for row, column in wanted.nonzero().tolist()]
        if places:
            self._record(places, logits if logits.dtype == torch.float64 else logits.float())
        self._position += ids.shape[1]
        return ids.numel()

    def _record(self, places: list[tuple[int, int]], logits: Tensor) -> None:
        """Note the scores of the tokens that follow these places (row, position), given the N V logits there."""
        rows = [row for row, position in places]
        follows = [position + 1 < len(self.sequences[row]) for row, position in places]
        for i, row in enumerate(rows):
            if not follows[i]:
                self.next_logits[row] = logits[i].cpu()
        targets = [
            self.sequences[row][position + 1] if there else 0
            for (row, position), there in zip(places, follows, strict=True)
        ]
        target = torch.tensor(targets, device=logits.device)[:, None]
        total = logits.logsumexp(-1, keepdim=True)
        log_probabilities = (logits.gather(-1, target) - total)[:, 0].tolist()
        greedy = (logits.argmax(-1, keepdim=True) == target)[:, 0].tolist()
        alternatives = [()] * len(places) if self.top is None else _best(logits, total, self.top)
        for i, (row, position) in enumerate(places):
            if follows[i]:
                token = ScoredToken(targets[i], log_probabilities[i], greedy[i], alternatives[i])
                self._found[row][position + 1] = token

    def texts(self) -> list[ScoredText]:
        """The text of each sequence."""
        assert self.done
        return [
            ScoredText(tuple(found.get(i, ScoredToken(ids[i])) for i in range(first, len(ids))))
            for ids, found, first in zip(self.sequences, self._found, self.first, strict=True)
        ]


def score(
    network: Network,
    sequences: Sequence[Sequence[int]],
    first: Sequence[int] | None = None,
    top: int | None = None,
    report: Callable[[int, int], object] = lambda *_: None,
) -> list[ScoredText]:
    """Score the texts in these sequences of ids, in batches of similar length.

    `first` is where the text starts in each sequence, by default 0; what precedes it is only its context. `top` is
    the number of alternatives, and `report(done, total)` receives the numbers of sequences.
    """
    check_options(log_probabilities=top)
    starts = [0] * len(sequences) if first is None else first
    for ids in sequences:
        check_scorable(network.config, len(ids))
    texts: list[ScoredText] = [ScoredText(())] * len(sequences)
    done = 0
    for rows in _divide([len(ids) for ids in sequences], network.config.n_vocab):
        batch = ScoringBatch(network, [sequences[i] for i in rows], [starts[i] for i in rows], top)
        while not batch.done:
            batch.run_chunk()
        for i, text in zip(rows, batch.texts(), strict=True):
            texts[i] = text
        done += len(rows)
        report(done, len(sequences))
    return texts


def check_scorable(config: AnyConfig, length: int, with_next: bool = False) -> None:
    """Raise an error unless the model can score a sequence of this many tokens.

    The last token is only predicted, not read, unless the logits of the token after it are needed too.
    """
    need_causal(config)
    limited = isinstance(config, Config) or (
        isinstance(config, EnsembleConfig) and any(isinstance(each, Config) for each in config.members)
    )
    most = config.n_context + (not with_next)
    if length < 1:
        raise UserError("a text to score is empty: expected at least one token")
    if limited and length > most:
        raise UserError(
            f"a text to score has {length} tokens; with a context of {config.n_context}, at most {most} can be "
            "scored: shorten it"
        )


def fits(lengths: Sequence[int], n_vocab: int) -> bool:
    """Whether sequences of these lengths form a batch of the allowed size."""
    return len(lengths) <= 1 or (
        len(lengths) * max(lengths) <= MOST_TOKENS and len(lengths) <= LOGITS_AT_ONCE // n_vocab
    )


def _divide(lengths: Sequence[int], n_vocab: int) -> Iterator[list[int]]:
    """Divide sequences of these lengths into batches, the longest first."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not fits([lengths[j] for j in (*batch, i)], n_vocab):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _best(logits: Tensor, total: Tensor, count: int) -> list[tuple[tuple[int, float], ...]]:
    """The most probable ids of each row with their log-probabilities."""
    best = logits.topk(min(count, logits.shape[-1]))
    pairs = zip(best.indices.tolist(), (best.values - total).tolist(), strict=True)
    return [tuple(zip(ids, values, strict=True)) for ids, values in pairs]


def _make_reader(network: Network, B: int, T: int) -> ReadColumns:
    """A function that reads B sequences of up to T tokens, the next columns at each call."""
    if isinstance(network, Ensemble):
        readers = [_make_reader(each, B, T) for each in network.members]
        return lambda ids, wanted: log_mean([read(ids, wanted) for read in readers])
    if isinstance(network, NGram):
        return _make_ngram_reader(network)
    if isinstance(network, Recurrent):
        state = network.begin(B)
        return lambda ids, wanted: network.unembed(network.hidden_states(ids, state)[wanted])
    weight = network.embedding.weight
    cache = KVCache(network.config, B, T, weight.device, weight.dtype)
    return lambda ids, wanted: network.unembed(network.hidden_states(ids, cache=cache)[wanted])


def _make_ngram_reader(network: NGram) -> ReadColumns:
    before: list[Tensor] = []  # the columns that can influence the next ones

    def read(ids: Tensor, wanted: Tensor) -> Tensor:
        seen = torch.cat([*before, ids], dim=1)
        before[:] = [seen[:, -max(1, network.config.order - 1) :]]
        contexts = [each[:, -ids.shape[1] :][wanted] for each in network.contexts(seen)]
        return network.predict([each[None] for each in contexts])[0]

    return read
