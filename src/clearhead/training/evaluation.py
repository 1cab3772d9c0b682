"""Evaluation: loss, perplexity and bits per byte of a model on a text."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError
from clearhead.networks import AnyConfig, EnsembleConfig, Network
from clearhead.text.batches import Batch, Blanks
from clearhead.text.conversations import are_conversations, tokenize_conversations
from clearhead.text.corpus import Document, measure
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.start_token import StartToken, split_opening
from clearhead.text.token_cache import tokenize
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.objective import count_targets, evaluate

MOST_POSITIONS = 2**14  # in a batch, to limit memory


@dataclass(frozen=True)
class Evaluation:
    """The loss of a model on a text."""

    loss: float  # mean cross-entropy per token, in nats
    tokens: int  # in the text, each counted once
    bytes: int
    bidirectional: bool = False
    replies: bool = False  # in conversations, only the tokens of the assistant's replies count
    context: int = 0  # the length of a window
    stride: int = 0  # from one window to the next

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
    context: int | None = None,
    stride: int | None = None,
) -> Evaluation:
    """Evaluate all texts in windows of `context` tokens, each `stride` tokens after the previous one;
    `report(done, total)` receives token counts.

    Documents and conversations do not see each other: each has the loss that it would have alone. If the model
    expects a start token, every window begins with it.
    """
    config, mask = network.config, tokenizer.mask_id
    if not config.causal and mask is None:
        raise UserError("this model is bidirectional, but its tokenizer has no mask token")
    blanks = None if config.causal or mask is None else Blanks(mask)
    context, stride = _check_windows(config, context, stride)
    chats = config.causal and isinstance(tokenizer.config.get("chat_template"), str)
    replies = chats and are_conversations(texts)
    with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
        if replies:
            targets, n_bytes = tokenize_conversations(texts, tokenizer), measure(texts)[1]
            counted, before = count_targets(targets.targets[:]), 0  # nothing is predicted from it
        else:
            tokens = tokenize(texts, tokenizer, Path(cache))
            assert tokens.n_bytes is not None
            targets, before = split_opening(tokens, tokenizer)
            n_bytes, counted = tokens.n_bytes, len(targets)
            if tokenizer.end_id is None and counted < len(tokens):
                n_bytes -= len(tokenizer.spell(before))
        start = StartToken.of(tokenizer, targets)
        members = config.members if isinstance(config, EnsembleConfig) else (config,)
        most = [each.n_row for each in members if isinstance(each, NGramConfig)]
        rows = min([batch_size, max(1, MOST_POSITIONS // context), *most])
        windows = windows_for_evaluation(targets, context, rows, before, blanks, start, stride)
        loss = evaluate(network, _reporting(windows, len(targets), stride / context, report))
        return Evaluation(loss, counted, n_bytes, blanks is not None, replies, context, stride)


def _check_windows(config: AnyConfig, context: int | None, stride: int | None) -> tuple[int, int]:
    """The length of the windows, by default the model's context, and the stride, by default that length."""
    context = config.n_context if context is None else context
    least = min(2, config.n_context)
    if type(context) is not int or not least <= context <= config.n_context:
        raise UserError(
            f"context = {context!r}: expected {least} to {config.n_context}, the context of this model"
        )
    stride = context if stride is None else stride
    if type(stride) is not int or not 1 <= stride <= context:
        raise UserError(f"stride = {stride!r}: expected 1 to {context}, the length of the windows")
    if stride < context and not config.causal:
        raise UserError("`stride` applies to models that predict the next token; this one is bidirectional")
    return context, stride


def _reporting(
    windows: Iterator[Batch], total: int, new: float, report: Callable[[int, int], object]
) -> Iterator[Batch]:
    """The same windows; reports progress after each. `new` is the share of a window not in the previous one."""
    done = 0.0
    for window in windows:
        yield window
        done += window.targets.size * new
        report(min(total, round(done)), total)
    if done < total:  # windows without targets are left out
        report(total, total)
