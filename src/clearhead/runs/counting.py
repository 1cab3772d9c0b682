"""Training an n-gram model: its n-grams are counted in one pass, without training steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.files import home
from clearhead.language_model import LanguageModel
from clearhead.runs.preparation import PreparedText, prepare_text
from clearhead.runs.request import TrainingRequest
from clearhead.runtime.device import pick_device
from clearhead.text.corpus import Document
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.training.objective import evaluate

DEFAULT_ORDER = 5


@dataclass(frozen=True)
class CountedText:
    """An n-gram model, the text it was trained on, and how long training took."""

    model: LanguageModel
    text: PreparedText
    seconds: float

    @property
    def validation_loss(self) -> float:
        assert self.model.training is not None
        return float(self.model.training["validation_loss"])


def count_text(
    texts: Sequence[Document],
    request: TrainingRequest,
    cache: Path | None = None,
    on_text: Callable[[PreparedText], object] = lambda _: None,
    report: Callable[[int, int], object] = lambda *_: None,
    text: PreparedText | None = None,
) -> CountedText:
    """Train an n-gram model on these texts.

    `on_text` receives the prepared text; `report(done, total)` is called after each order. If `text` is given,
    preparation is skipped.
    """
    began = time.perf_counter()
    text = text or prepare_text(texts, request, cache or home() / "tokens")
    on_text(text)
    tokenizer, order = text.tokenizer, request.order or DEFAULT_ORDER
    end = tokenizer.need_end("an n-gram model")
    counts = count_ngrams(text.tokens, tokenizer.n_vocab, end, order, report=report)
    network = estimate(counts).to(pick_device(request.device))
    training = {
        "kind": "ngram",
        "order": order,
        "text_sha256": text.sha256,
        "share": text.share,
        "tokens": len(text.tokens),
        "validation_tokens": len(text.validation),
        "validation_loss": _validate(network, text),
    }
    return CountedText(LanguageModel(network, tokenizer, training), text, time.perf_counter() - began)


def _validate(network: NGram, text: PreparedText) -> float:
    before, config = int(text.tokens[len(text.tokens) - 1 :][0]), network.config
    return evaluate(network, windows_for_evaluation(text.validation, config.n_context, config.n_row, before))
