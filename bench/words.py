"""Compare skip-gram word vectors with gensim's: same text, settings and threads. Prints one JSON line.

    python -m bench.words novels.txt.xz [--megabytes 30] [--epochs 1] [--seeds 3]

Clearhead's time starts with the original, possibly compressed, text and includes decompressing, splitting,
counting and compiling. gensim's time starts with a file of the same words, one passage per line, read as
sentences. Its other input (--corpus-file) is faster, but with two workers its learning rate decays only half
as far in each epoch. gensim evaluates both on WordSim-353 (Spearman's rank correlation), from files in
word2vec's format.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from clearhead.classics.skip_gram import Settings
from clearhead.text.corpus import Document, documents
from clearhead.text.word_corpus import WordCorpus, passages
from clearhead.word_vectors import learn_words

LONGEST_LINE = 10_000  # words; gensim ignores the rest of longer lines
Evaluator = Callable[[Path], float]
Save = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--megabytes", type=float, help="use only the beginning of the text")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--corpus-file", action="store_true", help="make gensim use its corpus_file input")
    args = parser.parse_args()
    settings = [
        Settings(
            width=args.width,
            epochs=args.epochs,
            sample=args.sample,
            workers=args.workers,
            seed=seed,
        )
        for seed in range(1, args.seeds + 1)
    ]
    text = [_beginning(document, args.megabytes) for document in documents([args.text])]
    print(json.dumps(measure(text, settings, args.corpus_file)))


@dataclass(frozen=True)
class Measurement:
    """Time and quality of one training run."""

    seconds: float
    cpu_seconds: float  # over all threads; more meaningful on a busy machine
    wordsim353: float


def measure(text: list[Document], settings: list[Settings], corpus_file: bool = False) -> dict[str, Any]:
    """Train with each of the settings, and with gensim if it is installed. Return times and correlations."""
    compared = importlib.util.find_spec("gensim") is not None
    evaluate = _make_evaluator() if compared else lambda _: math.nan
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as place:
        lines, file = Path(place, "lines.txt"), Path(place, "x.bin")
        if compared:
            _write_lines(text, lines)
        for setting in settings:
            ours.append(_run(partial(_train_ours, text, setting, file), file, evaluate))
            if compared:
                theirs.append(_run(partial(_train_gensim, lines, setting, file, corpus_file), file, evaluate))
    result: dict[str, Any] = {
        "bench": "words",
        "epochs": settings[0].epochs,
        "workers": settings[0].workers,
        "seconds": [round(run.seconds, 2) for run in ours],
        "cpu_seconds": [round(run.cpu_seconds, 2) for run in ours],
    }
    if compared:
        result |= {
            "gensim_seconds": [round(run.seconds, 2) for run in theirs],
            "gensim_cpu_seconds": [round(run.cpu_seconds, 2) for run in theirs],
            "wordsim353": [round(run.wordsim353, 4) for run in ours],
            "gensim_wordsim353": [round(run.wordsim353, 4) for run in theirs],
            "correlation_difference": round(
                mean(r.wordsim353 for r in ours) - mean(r.wordsim353 for r in theirs), 4
            ),
            "cpu_ratio": round(sum(r.cpu_seconds for r in ours) / sum(r.cpu_seconds for r in theirs), 3),
            "ratio": round(sum(r.seconds for r in ours) / sum(r.seconds for r in theirs), 3),
        }
    return result


def _run(train: Callable[[], Save], file: Path, evaluate: Evaluator) -> Measurement:
    start, cpu_start = time.perf_counter(), time.process_time()
    save = train()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    save()
    return Measurement(seconds, cpu_seconds, evaluate(file))


def _train_ours(text: list[Document], settings: Settings, file: Path) -> Save:
    vectors = learn_words(text, settings)
    return partial(vectors.save, file)


def _train_gensim(lines: Path, settings: Settings, file: Path, corpus_file: bool) -> Save:
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    model = Word2Vec(
        **({"corpus_file": str(lines)} if corpus_file else {"sentences": LineSentence(str(lines))}),
        sg=1,
        vector_size=settings.width,
        window=settings.window,
        negative=settings.negative,
        min_count=settings.min_count,
        sample=settings.sample,
        alpha=settings.learning_rate,
        epochs=settings.epochs,
        seed=settings.seed,
        workers=settings.workers,
    )
    return partial(model.wv.save_word2vec_format, str(file), binary=True)


def _make_evaluator() -> Evaluator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from gensim and its imports
        from gensim.models import KeyedVectors
        from gensim.test.utils import datapath

    def evaluate(file: Path) -> float:
        vectors = KeyedVectors.load_word2vec_format(str(file), binary=True)
        _, spearman, _ = vectors.evaluate_word_pairs(datapath("wordsim353.tsv"))
        return float(spearman[0])

    return evaluate


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
