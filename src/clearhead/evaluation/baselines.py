"""Baselines: what other models and compression programs need for the same text, in bits per byte."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.errors import UserError
from clearhead.evaluation.run_text import ReportText
from clearhead.evaluation.token_losses import measure_tokens
from clearhead.formats import pulled
from clearhead.language_model import LanguageModel, load
from clearhead.text.corpus import Document
from clearhead.text.tokens import Tokens
from clearhead.training.position_loss import bits_per_byte

ORDER = 5
MOST_COUNTED = 2**22  # training tokens, so that counting takes seconds
PRETRAINED = "smollm2"
MOST_READ = 4096  # tokens that the pretrained model reads, in windows of up to `WINDOW`
WINDOW = 1024
SHORT = 2000  # bytes; the headers of gzip and xz are a large part of what they write for a shorter text


@dataclass(frozen=True)
class Baseline:
    """A model to compare with, and what it has read."""

    name: str
    bits_per_byte: float
    about: str
    own: bool = False  # whether it was trained on the model's own training text


def measure_ngram(model: LanguageModel, text: ReportText, training: Tokens, n_bytes: int) -> Baseline:
    """A 5-gram model of the same training text, with the same tokens and the same windows."""
    tokenizer, counted = model.tokenizer, training.part(0, MOST_COUNTED)
    end = tokenizer.need_end("an n-gram model")
    network = estimate(count_ngrams(counted, model.config.n_vocab, end, ORDER))
    counting = LanguageModel(network, tokenizer)
    losses = measure_tokens(counting, text.tokens, text.before, context=model.config.n_context)
    part = "its training text" if len(counted) == len(training) else "the beginning of its training text"
    bits = bits_per_byte(losses.loss * len(text.tokens), n_bytes)
    return Baseline(f"{ORDER}-gram", bits, f"counted in {part}, {len(counted):,} tokens", own=True)


def measure_pretrained(
    model: LanguageModel, documents: list[str], on_message: Callable[[str], object], device: str | None
) -> Baseline | None:
    """SmolLM2 on windows spread over the text; None if it has not been pulled, or is the model itself."""
    title = pulled.look_up(PRETRAINED).title
    if pulled.find(PRETRAINED) is None or model.name == PRETRAINED:
        return None
    on_message(f"measuring {title}")
    other = load(PRETRAINED, device)
    try:
        texts = [Document.of(str(i), each) for i, each in enumerate(documents)]
        read = ReportText.read("", texts, other.tokenizer)
    except UserError:  # a text that it cannot encode
        return None
    context = min(WINDOW, other.config.n_context)
    losses = measure_tokens(other, read.tokens, read.before, MOST_READ, context)
    n_bytes = sum(len(other.tokenizer.spell(i)) for i in losses.ids.tolist())
    about = f"pretrained, measured on {len(losses.ids):,} tokens in windows of {context:,}"
    return Baseline(title, bits_per_byte(float(losses.losses.sum()), n_bytes), about)


def compressed_bits(text: bytes) -> dict[str, float]:
    """Bits per byte with each program at its highest level. Both start without knowledge of any other text."""
    sizes = {
        "gzip": len(gzip.compress(text, 9, mtime=0)),
        "xz": len(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)),
    }
    return {name: 8 * size / len(text) for name, size in sizes.items()}


def compression_note(n_bytes: int) -> str:
    """A caveat about the programs' figures for a text of this length; empty if the text is long enough."""
    if n_bytes >= SHORT:
        return ""
    return f"The text has only {n_bytes:,} bytes, so the headers of gzip and xz are a large part of their figures."
