"""Word vectors for users: train, save, load and query them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from clearhead.classics.skip_gram import Settings, SkipGram, SkipGramProgress, compiled
from clearhead.classics.word_table import WordTable
from clearhead.formats import word2vec
from clearhead.text.corpus import Document, readable_documents
from clearhead.text.word_corpus import WordCorpus


class WordVectors(WordTable):
    """One vector per word: `vectors["cat"]`, `.nearest("cat")`, `.analogy("king", "man", "woman")`."""

    def save(self, path: str | Path) -> None:
        """Write a file that word2vec, gensim and others can read: .bin is binary, .txt and .vec are text."""
        word2vec.save(Path(path), self.words, self.vectors)


def load_words(path: str | Path) -> WordVectors:
    """Load word vectors from a file in word2vec's binary or text format."""
    return WordVectors(*word2vec.load(Path(path)))


def train_words(sources: str | Path | Sequence[str | Path], **settings: Any) -> WordVectors:
    """Train word vectors on your text: a file, a folder, a glob pattern, or several of these.

    Skip-gram with negative sampling. The keyword arguments are the fields of `Settings`: width, window,
    negative, min_count, sample, epochs, learning_rate, seed, workers. With workers=1, the same seed gives
    the same vectors.
    """
    given = [sources] if isinstance(sources, str | Path) else sources
    return learn_words(readable_documents(given), Settings(**settings))


def learn_words(
    texts: Iterable[Document],
    settings: Settings,
    on_progress: Callable[[SkipGramProgress], object] | None = None,
) -> WordVectors:
    """Train word vectors on documents; `on_progress` is called repeatedly during training."""
    compiled()  # fail before reading the text if numba is missing
    corpus = WordCorpus.read(texts, settings.min_count)
    learner = SkipGram(corpus, settings)
    for progress in learner:
        if on_progress is not None:
            on_progress(progress)
    return WordVectors(corpus.words, learner.inputs)
