"""Skip-gram against gensim's on the same text, with the same settings and threads, in one run.

    python -m bench.words novels.txt.xz [--megabytes 30] [--epochs 1] [--seeds 3]

Our time begins with the text as it is, packed or not, and so counts unpacking, splitting, counting and
compiling; gensim's begins with a file in which these words already stand one passage a line, read as
sentences. Its other way (--corpus-file) is faster, but with two workers its rate falls only half as far in
each epoch. Both are judged by gensim, from a file in word2vec's format, on WordSim-353 (Spearman's rank
correlation).
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

LONGEST_LINE = 10_000  # words; of longer ones gensim would take no more
Judge = Callable[[Path], float]
Save = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--megabytes", type=float, help="only the beginning of the text")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--corpus-file", action="store_true", help="gensim's other way of reading")
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
    print(json.dumps(measure(text, settings, asked.corpus_file)))


@dataclass(frozen=True)
class Run:
    """What one training took, and how good it is."""

    seconds: float
    processor: float  # seconds of it, in all threads: on a crowded machine these tell more
    wordsim353: float


def measure(text: list[Document], settings: list[Settings], corpus_file: bool = False) -> dict[str, Any]:
    """Times and correlations, a run of each for each of the settings; without gensim only our times."""
    compared = importlib.util.find_spec("gensim") is not None
    judge = _judge() if compared else lambda _: math.nan
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as place:
        lines, file = Path(place, "lines.txt"), Path(place, "x.bin")
        if compared:
            _write_lines(text, lines)
        for each in settings:
            ours.append(_run(partial(_train_ours, text, each, file), file, judge))
            if compared:
                theirs.append(_run(partial(_train_gensim, lines, each, file, corpus_file), file, judge))
    result: dict[str, Any] = {
        "bench": "words",
        "epochs": settings[0].epochs,
        "workers": settings[0].workers,
        "seconds": [round(run.seconds, 2) for run in ours],
        "processor_seconds": [round(run.processor, 2) for run in ours],
    }
    if compared:
        result |= {
            "gensim_seconds": [round(run.seconds, 2) for run in theirs],
            "gensim_processor_seconds": [round(run.processor, 2) for run in theirs],
            "wordsim353": [round(run.wordsim353, 4) for run in ours],
            "gensim_wordsim353": [round(run.wordsim353, 4) for run in theirs],
            "better_by": round(mean(r.wordsim353 for r in ours) - mean(r.wordsim353 for r in theirs), 4),
            "processor_ratio": round(sum(r.processor for r in ours) / sum(r.processor for r in theirs), 3),
            "ratio": round(sum(r.seconds for r in ours) / sum(r.seconds for r in theirs), 3),
        }
    return result


def _run(train: Callable[[], Save], file: Path, judge: Judge) -> Run:
    start, processor = time.perf_counter(), time.process_time()
    save = train()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    save()
    return Run(seconds, processor, judge(file))


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
        alpha=settings.rate,
        epochs=settings.epochs,
        seed=settings.seed,
        workers=settings.workers,
    )
    return partial(model.wv.save_word2vec_format, str(file), binary=True)


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
