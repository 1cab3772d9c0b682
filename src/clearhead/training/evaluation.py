"""Evaluation: loss, perplexity and bits per byte of a model on a text."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError
from clearhead.networks import EnsembleConfig, Network
from clearhead.text.batches import Batch, Blanks
from clearhead.text.conversations import are_conversations, tokenize_conversations
from clearhead.text.corpus import Document, measure
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.token_cache import tokenize
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.objective import count_targets, evaluate


@dataclass(frozen=True)
class Evaluation:
    """The loss of a model on a text."""

    loss: float  # mean cross-entropy per token, in nats
    tokens: int  # in the text, each counted once
    bytes: int
    bidirectional: bool = False
    replies: bool = False  # in conversations, only the tokens of the assistant's replies count

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float | None:
        """Comparable across tokenizers, unlike the loss per token. None for masked tokens and replies."""
        return (
            None if self.bidirectional or self.replies else self.loss * self.tokens / math.log(2) / self.bytes
        )


def evaluate_texts(
    network: Network,
    tokenizer: Tokenizer,
    texts: Sequence[Document],
    batch_size: int,
    report: Callable[[int, int], object],
) -> Evaluation:
    """Evaluate all texts in disjoint windows; `report(done, total)` receives token counts.

    Documents and conversations do not see each other: each has the loss that it would have alone.
    """
    config, mask = network.config, tokenizer.mask_id
    if not config.causal and mask is None:
        raise UserError("this model is bidirectional, but its tokenizer has no mask token")
    blanks = None if config.causal or mask is None else Blanks(mask)
    chats = config.causal and isinstance(tokenizer.config.get("chat_template"), str)
    replies = chats and are_conversations(texts)
    with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
        if replies:
            targets, n_bytes = tokenize_conversations(texts, tokenizer), measure(texts)[1]
            counted = count_targets(targets.targets[:])
        else:
            tokens = tokenize(texts, tokenizer, Path(cache))
            assert tokens.n_bytes is not None
            targets, n_bytes = tokens.part(1), tokens.n_bytes  # the first end token is not a target
            counted = len(targets)
        start_id = tokenizer.start_ids[-1] if tokenizer.start_ids and not replies else None
        before = tokenizer.end_id if start_id is None else start_id
        members = config.members if isinstance(config, EnsembleConfig) else (config,)
        rows = min([batch_size, *(each.n_row for each in members if isinstance(each, NGramConfig))])
        windows = windows_for_evaluation(targets, config.n_context, rows, before, blanks, start_id)
        loss = evaluate(network, _reporting(windows, len(targets), report))
        return Evaluation(loss, counted, n_bytes, bidirectional=blanks is not None, replies=replies)


def _reporting(windows: Iterator[Batch], total: int, report: Callable[[int, int], object]) -> Iterator[Batch]:
    """The same windows; reports progress after each."""
    done = 0
    for window in windows:
        yield window
        done = min(total, done + window.targets.size)
        report(done, total)
    if done < total:  # windows without targets are left out
        report(total, total)
