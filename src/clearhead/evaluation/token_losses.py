"""The loss of each token of a text, and its mean by position in the window and by frequency in the training text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.generate import scoring
from clearhead.language_model import LanguageModel
from clearhead.text.evaluation_windows import cut_windows
from clearhead.text.start_token import StartToken
from clearhead.text.tokens import IGNORED, Tokens
from clearhead.training.objective import count_targets
from clearhead.training.position_loss import PositionLoss

MOST_TOKENS = 50_000  # measured at most; in a longer text, windows spread over all of it
AT_ONCE = 64  # windows
FREQUENCIES = (0, 1, 10, 100, 1000, 10_000)  # the smallest number of occurrences in each group

TokenEntry = tuple[int, int, float, int, int, float]  # of one token in the columns of `TokenLosses`


@dataclass(frozen=True)
class FrequencyLoss:
    """The mean loss of the tokens that occur `least` to `most` times in the training text."""

    least: int
    most: int | None
    tokens: int
    loss: float


@dataclass(frozen=True)
class TokenLosses:
    """One entry per measured token, in the order of the text."""

    places: NDArray[np.int64]  # in the text
    ids: NDArray[np.int64]
    losses: NDArray[np.float64]  # in nats
    positions: NDArray[
        np.int64
    ]  # in its window: the number of tokens before the one that it is predicted from
    predicted: NDArray[np.int64]  # the most likely id
    confidence: NDArray[np.float64]  # its probability

    @property
    def loss(self) -> float:
        return float(self.losses.mean())

    def by_position(self) -> list[tuple[float, float]]:
        """(mean number of tokens read, mean loss) for positions 0, 1, 2 to 3, 4 to 7, …"""
        sums = np.bincount(self.positions, self.losses)
        counts = np.bincount(self.positions).astype(np.float64)
        return PositionLoss(torch.from_numpy(sums), torch.from_numpy(counts)).bins()

    def by_frequency(self, counts: NDArray[np.int64]) -> list[FrequencyLoss]:
        """The mean loss by the number of times that a token occurs in the training text, given by id."""
        found, times = [], counts[self.ids]
        for least, above in pairwise((*FREQUENCIES, None)):
            assert least is not None
            inside = (times >= least) & (times < (math.inf if above is None else above))
            if inside.any():
                most = None if above is None else above - 1
                loss = float(self.losses[inside].mean())
                found.append(FrequencyLoss(least, most, int(inside.sum()), loss))
        return found

    def surprises(self, count: int, ends: Sequence[int] = ()) -> list[int]:
        """The indices of the tokens with the highest loss, the highest first, without these `ends` of documents."""
        order = np.argsort(-self.losses, kind="stable")
        return order[~np.isin(self.ids[order], ends)][:count].tolist()


def measure_tokens(
    model: LanguageModel,
    tokens: Tokens,
    before: int,
    most: int = MOST_TOKENS,
    context: int | None = None,
) -> TokenLosses:
    """Measure the tokens of a text, up to about `most` of them, in the windows of `eval`.

    `before` is the id that precedes the text, and `context` the length of a window, by default the model's context.
    """
    T, start = context or model.config.n_context, StartToken.of(model.tokenizer, tokens)
    counts = [count_targets(targets) for _, targets in cut_windows(tokens, T, before, start)]
    whole = sum(counts)
    kept = max(1, round(len(counts) * min(1, most / max(1, whole))))
    chosen = set(np.linspace(0, len(counts) - 1, kept).round().astype(int).tolist())
    found: list[TokenEntry] = []
    place = 0
    windows = enumerate(cut_windows(tokens, T, before, start))
    while part := list(islice(windows, AT_ONCE)):
        rows = []
        for number, (inputs, targets) in part:
            if number in chosen:
                rows.append((place, targets, [*inputs.tolist(), int(targets[-1])]))
            place += counts[number]
        found += _measure(model, rows)
    columns = [np.array(column) for column in zip(*found, strict=True)]
    measured = TokenLosses(*columns)
    if broken := int((~np.isfinite(measured.losses)).sum()):
        raise UserError(
            f"the loss of {broken:,} of {len(measured.losses):,} tokens is infinite or not a number: the model's "
            "weights are damaged, or too large for its number format"
        )
    return measured


def _measure(
    model: LanguageModel, windows: Sequence[tuple[int, NDArray[np.int64], list[int]]]
) -> Iterator[TokenEntry]:
    """The entry of each target in the windows. A window is the place of its first target, its targets and its ids."""
    first = [int((targets == IGNORED).sum()) + 1 for _, targets, _ in windows]
    texts = scoring.score(model.network, [ids for _, _, ids in windows], first, 1)
    for (place, _, _), before, text in zip(windows, first, texts, strict=True):
        for i, token in enumerate(text.tokens):
            [(best, log_probability)] = token.alternatives
            assert token.log_probability is not None
            loss, confidence = -token.log_probability, math.exp(log_probability)
            yield place + i, token.id, loss, before + i - 1, best, confidence
