"""Prepare the text of a run: its tokenizer, and its tokens for training and validation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import OwnError, UserError
from clearhead.runs.held_out import read_held_out
from clearhead.runs.plan import choose_tokenizer
from clearhead.runs.request import TrainingRequest
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.conversations import LIST_SUFFIX, SUFFIX, are_conversations, tokenize_conversations
from clearhead.text.corpus import Document, cut, documents, measure, thin
from clearhead.text.held_out import HeldOut
from clearhead.text.sources import suffix_of
from clearhead.text.start_token import split_opening
from clearhead.text.token_cache import find_tokens, tokenize
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import END
from clearhead.text.tokens import Tokens
from clearhead.training.objective import count_targets

LARGEST_VALIDATION = 200_000  # bytes at the end of the text, by default
LARGEST_START_VALIDATION = 20_000  # for fine-tuning: evaluating a large model is slow

# Bytes that a tokenizer is trained on, sampled from the whole text: 4 MB sampled this way works as well as the
# first 16 MB (see docs/experiments.md). A large vocabulary needs more, and a short time allows less.
TOKENIZER_TEXT = 4_000_000
TOKENIZER_TEXT_PER_TOKEN = 1_000
TOKENIZER_TEXT_PER_SECOND = 2**16

TOKENIZING_SHARE = 0.1  # of the time; if the whole text takes longer, only part of it is used
LEAST_TOKENIZING_SHARE = 0.03  # of the time, however long it took to read the text
LONG_DOCUMENT = 1000  # tokens; if documents are longer, the end token is too rare to learn what follows it
COUNTED = 2**20  # tokens whose bytes are counted at a time
LEAST_TEXT = 200_000  # bytes of text that are always used
TRIED_TEXT, TRIED_PART = 2**18, 2**13  # bytes tokenized to measure the speed, and characters per part


@dataclass(frozen=True)
class PreparedText:
    """What a run needs to know about its text."""

    sha256: str  # of the whole text
    share: float  # share of the text that is used
    tokenizer: Tokenizer
    tokens: Tokens  # for training
    validation: Tokens
    before: int | None = None  # the token before the validation tokens, if not the last one of `tokens`


def prepare_text(
    texts: Sequence[Document],
    request: TrainingRequest,
    cache: Path,
    tokenizer: Tokenizer | None = None,
    share: float | None = None,
    earlier: Mapping[str, Any] | None = None,
    held_out: HeldOut | None = None,
) -> PreparedText:
    """Prepare the text. `tokenizer` and `share` are given when a run is resumed or a model is fine-tuned.

    `earlier` describes the training of the model to fine-tune: the same text is split in the same place, so that
    what was held out then is held out again. `held_out` is what was held out of a text that has changed since.
    """
    began = time.perf_counter()
    sha256, n_bytes = measure(texts)
    reading = time.perf_counter() - began
    tokenizer = tokenizer or _train_tokenizer(texts, request, n_bytes)
    same = earlier is not None and earlier.get("text_sha256") == sha256 and request.validation is None
    if same and earlier is not None:
        share = float(earlier.get("share", 1.0)) if share is None else share
        if earlier.get("held_out") and request.start is not None:
            held_out = held_out or read_held_out(Path(request.start), tokenizer.end_id)
    if share is None:
        fitting = _fitting_share(texts, request, tokenizer, n_bytes, reading)
        share = 1.0
        while share > fitting and find_tokens(sha256, tokenizer, cache, share) is None:
            share /= 2  # few distinct shares, so that runs can reuse each other's token caches
    tokens = _tokenize(texts, request, tokenizer, cache, share, sha256)
    if held_out is not None:
        training = held_out.remove_from(tokens, tokenizer.end_id)
        if len(training) <= 2 or not holds_targets(training):  # a document without text is two end tokens
            raise UserError("no text is left to train on: all of it was already held out for validation")
        before = int(held_out.before[-1])
        return PreparedText(sha256, share, tokenizer, training, held_out.validation, before)
    middle = int(earlier.get("tokens", 0)) if same and earlier is not None else 0
    training, validation, known = _split(tokens, request, tokenizer, cache, share * n_bytes, middle)
    return PreparedText(sha256, share, tokenizer, training, validation, known)


def prepare_on_all_ranks(
    group: ProcessGroup,
    texts: Sequence[Document],
    request: TrainingRequest,
    cache: Path,
    tokenizer: Tokenizer | None,
    share: float | None,
    earlier: Mapping[str, Any] | None,
    held_out: HeldOut | None,
) -> PreparedText:
    """Rank 0 prepares the text; the others find its tokens in the cache, or tokenize it the same way."""
    made: list[PreparedText] = []

    def prepare_first() -> tuple[str, Tokenizer, float]:
        made.append(prepare_text(texts, request, cache, tokenizer, share, earlier, held_out))
        return made[0].sha256, made[0].tokenizer, made[0].share

    sha256, tokenizer, share = group.run_on_main(prepare_first)
    text = made[0] if made else prepare_text(texts, request, cache, tokenizer, share, earlier, held_out)
    if text.sha256 != sha256:
        raise OwnError(
            "the text that this process reads differs from rank 0's: give all processes the same text"
        )
    return text


def _train_tokenizer(texts: Sequence[Document], request: TrainingRequest, n_bytes: int) -> Tokenizer:
    kind, n_vocab = choose_tokenizer(request, n_bytes)
    if kind in ("char", "byte"):
        whole = (piece.replace(END, "") for document in texts for piece in document.pieces())
        return Tokenizer.train(kind, whole, n_vocab, mask=request.bidirectional)
    most = max(TOKENIZER_TEXT, TOKENIZER_TEXT_PER_TOKEN * (n_vocab or 0))
    taken = n_bytes
    if request.minutes is not None:
        most = min(most, int(60 * request.minutes * TOKENIZER_TEXT_PER_SECOND))
        taken = min(taken, LEAST_TEXT)
    # Exclude the validation text, which is a larger fraction when less of the text is used.
    beginning = int((1 - _fraction(request, taken)) * n_bytes)
    sample = (stretch.replace(END, "") for stretch in _sample(texts, beginning, most / n_bytes))
    return Tokenizer.train(kind, sample, n_vocab, mask=request.bidirectional)


def _sample(texts: Sequence[Document], n_bytes: int, share: float) -> Iterator[str]:
    """A sample of this share, spread over the first `n_bytes` of the text."""
    left = n_bytes

    def beginning(pieces: Iterable[str]) -> Iterator[str]:
        nonlocal left
        for piece in pieces:
            encoded = piece.encode(errors="surrogatepass")
            yield encoded[:left].decode(errors="ignore")
            left -= len(encoded)
            if left <= 0:
                return

    for number, document in enumerate(texts):
        if left > 0:
            yield from (stretch for _, stretch in thin(beginning(document.pieces()), number, share))


def _fitting_share(
    texts: Sequence[Document], request: TrainingRequest, tokenizer: Tokenizer, n_bytes: int, reading: float
) -> float:
    """The share of the text that there is time to tokenize; `reading` is the time in seconds to read all of it."""
    if request.minutes is None or _are_talks(texts, request):
        return 1.0
    parts = [part for piece in _sample(texts, TRIED_TEXT, 1.0) for part in cut(piece, TRIED_PART)]
    began = time.perf_counter()
    try:
        tokenizer.encode_batch(parts)
    except UserError:
        return 1.0  # `tokenize` reports the error with its position
    whole = (time.perf_counter() - began) * max(1.0, n_bytes / TRIED_TEXT)
    seconds = 60 * request.minutes
    fitting = max(TOKENIZING_SHARE * seconds - reading, LEAST_TOKENIZING_SHARE * seconds)
    return max(fitting / whole, LEAST_TEXT / n_bytes)


def _fraction(request: TrainingRequest, n_bytes: float) -> float:
    """The fraction of the text, at its end, used for validation."""
    if isinstance(request.validation, float):
        return request.validation
    if request.validation is not None:
        return 0.0
    largest = LARGEST_VALIDATION if request.start is None else LARGEST_START_VALIDATION
    return min(0.1, largest / n_bytes)


def _split(
    tokens: Tokens, request: TrainingRequest, tokenizer: Tokenizer, cache: Path, n_bytes: float, middle: int
) -> tuple[Tokens, Tokens, int | None]:
    """Tokens for training and for validation, and the token before the latter if it is not the last of the former.

    `middle` is where they were split before, or 0.
    """
    before = None
    if 0 < middle < len(tokens):
        training, validation = tokens.part(0, middle), tokens.part(middle)
    elif request.validation is None or isinstance(request.validation, float):
        training, validation = tokens.split(_fraction(request, n_bytes))
    else:
        training = tokens
        given = request.validation
        files = [given] if isinstance(given, str | Path) else given
        validation = _tokenize(list(documents(files)), request, tokenizer, cache)
        if validation.all_count:
            validation, before = split_opening(validation, tokenizer)
    if not len(validation):
        message = "no text is left for validation: provide more text, or a larger `validation`"
        raise UserError(message, "validation_empty")
    for part, what in ((training, "to train on"), (validation, "for validation")):
        if not holds_targets(part):
            raise UserError(
                f"no reply is left {what}: provide more conversations, or a different `validation`"
            )
    return training, validation, before


def count_bytes(tokens: Tokens, tokenizer: Tokenizer) -> int:
    """The length of the text of these tokens, in bytes of UTF-8."""
    lengths = np.array([len(tokenizer.spell(i)) for i in range(tokenizer.n_vocab)])
    return sum(int(lengths[tokens[i : i + COUNTED]].sum()) for i in range(0, len(tokens), COUNTED))


def find_opening(tokens: Tokens, tokenizer: Tokenizer) -> list[int] | None:
    """What to generate from without a prompt: the most frequent token that ends a line, or else a sentence or a word.

    Windows often start with it, so the model has learned what follows. None, which stands for the end token, if
    that is frequent too, because documents are short. If there is neither such a token nor an end token, the first
    token of the text.
    """
    start = tokens[:COUNTED]
    if np.count_nonzero(tokens.document_starts(0, COUNTED)) * LONG_DOCUMENT > len(start):
        return None
    ids, counts = np.unique(start, return_counts=True)
    spelled = {int(i): tokenizer.spell(int(i)) for i in ids}
    for ends in ((b"\n",), (b".", b"!", b"?"), (b" ",)):
        found = [(int(n), int(i)) for i, n in zip(ids, counts, strict=True) if spelled[int(i)].endswith(ends)]
        if found:
            return [max(found)[1]]
    return start[:1].tolist() if tokenizer.end_id is None else None


def check_names(texts: Sequence[Document]) -> list[str]:
    """Notes on files that hold conversations, if they are read as plain text."""
    suffixes = {suffix_of(Path(each.name)) for each in texts}
    return [
        f"a {suffix} file is read as plain text: to train on conversations, fine-tune a model"
        for suffix in (SUFFIX, LIST_SUFFIX)
        if suffix in suffixes
    ]


def holds_targets(tokens: Tokens) -> bool:
    """Whether there are any targets to train or evaluate on."""
    return tokens.all_count or count_targets(tokens.targets[:]) > 0


def _tokenize(
    texts: Sequence[Document],
    request: TrainingRequest,
    tokenizer: Tokenizer,
    cache: Path,
    share: float = 1.0,
    text_sha256: str | None = None,
) -> Tokens:
    if _are_talks(texts, request):
        return tokenize_conversations(texts, tokenizer)
    return tokenize(texts, tokenizer, cache, share=share, text_sha256=text_sha256)


def _are_talks(texts: Sequence[Document], request: TrainingRequest) -> bool:
    """Whether the texts are conversations: .jsonl files, when fine-tuning."""
    return request.start is not None and are_conversations(texts)
