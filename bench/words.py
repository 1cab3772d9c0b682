"""Skip-gram against gensim's on the same text, with the same settings and threads, in one run.

    python -m bench.words novels.txt.xz [--megabytes 30] [--epochs 1] [--seeds 3]

Our time begins with the text as it is, packed or not, and so counts unpacking, splitting, counting and
compiling; gensim's begins with a file in which these words already stand one passage a line, which is its
fastest way. Both are judged by gensim, from a file in word2vec's format, on WordSim-353 (Spearman's rank
correlation).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from clearhead.text.corpus import Document, documents
from clearhead.text.words import WordCorpus, passages
from clearhead.training.skip_gram import Settings
from clearhead.word_vectors import WordVectors, learn_words

LONGEST_LINE = 10_000  # words; of longer ones gensim would take no more
Judge = Callable[[Path], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--megabytes", type=float, help="only the beginning of the text")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    settings = [
        Settings(
            width=asked.width,
            epochs=asked.epochs,
            sample=asked.sample,
            workers=asked.workers,
            seed=seed,
        )
        for seed in range(1, asked.seeds + 1)
    ]
    text = [_beginning(document, asked.megabytes) for document in documents([asked.text])]
    print(json.dumps(measure(text, settings)))


def measure(text: list[Document], settings: list[Settings]) -> dict[str, Any]:
    """Times and correlations, a run of each for each of the settings; without gensim only our times."""
    theirs = importlib.util.find_spec("gensim") is not None
    with tempfile.TemporaryDirectory() as place:
        lines, ours_file, theirs_file = (
            Path(place, name) for name in ("lines.txt", "ours.bin", "theirs.bin")
        )
        if theirs:
            judge = _judge()
            _write_lines(text, lines)
        ours, others = [], []
        for each in settings:
            vectors, seconds = _ours(text, each)
            vectors.save(ours_file)
            ours.append((seconds, judge(ours_file) if theirs else None))
            if theirs:
                others.append((_gensim(lines, each, theirs_file), judge(theirs_file)))
    result: dict[str, Any] = {
        "bench": "words",
        "words": len(vectors),
        "epochs": settings[0].epochs,
        "workers": settings[0].workers,
        "seconds": [round(seconds, 2) for seconds, _ in ours],
    }
    if theirs:
        result |= {
            "gensim_seconds": [round(seconds, 2) for seconds, _ in others],
            "wordsim353": [round(score, 4) for _, score in ours if score is not None],
            "gensim_wordsim353": [round(score, 4) for _, score in others],
            "better": round(mean(s for _, s in ours if s is not None) - mean(s for _, s in others), 4),
            "ratio": round(mean(seconds for seconds, _ in ours) / mean(seconds for seconds, _ in others), 3),
        }
    return result


def _ours(text: list[Document], settings: Settings) -> tuple[WordVectors, float]:
    start = time.perf_counter()
    vectors = learn_words(text, settings)
    return vectors, time.perf_counter() - start


def _gensim(lines: Path, settings: Settings, file: Path) -> float:
    from gensim.models import Word2Vec

    start = time.perf_counter()
    model = Word2Vec(
        corpus_file=str(lines),
        sg=1,
        vector_size=settings.width,
        window=settings.window,
        negative=settings.negative,
        min_count=settings.min_count,
        sample=settings.sample,
        alpha=settings.rate,
        epochs=settings.epochs,
        seed=settings.seed,
        workers=settings.workers,
    )
    seconds = time.perf_counter() - start
    model.wv.save_word2vec_format(str(file), binary=True)
    return seconds


def _judge() -> Judge:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim's, and those of what it imports
        from gensim.models import KeyedVectors
        from gensim.test.utils import datapath

    def judge(file: Path) -> float:
        vectors = KeyedVectors.load_word2vec_format(str(file), binary=True)
        _, spearman, _ = vectors.evaluate_word_pairs(datapath("wordsim353.tsv"))
        return float(spearman[0])

    return judge


def _write_lines(text: list[Document], lines: Path) -> None:
    with lines.open("w", encoding="utf-8") as file:
        for passage in passages(WordCorpus.read(text)):
            for start in range(0, len(passage), LONGEST_LINE):
                print(*passage[start : start + LONGEST_LINE], file=file)


def _beginning(document: Document, megabytes: float | None) -> Document:
    if megabytes is None:
        return document

    def read() -> Iterator[str]:
        left = int(megabytes * 1e6)
        for piece in document.read():
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    return Document(document.name, read)


if __name__ == "__main__":
    main()
