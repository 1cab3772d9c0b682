"""Compare sizes of the BPE vocabulary: bits per byte on the last tenth of a text after the same time.

Usage: python -m bench.vocabulary TEXT [--sizes 0.1MB 1MB] [--vocab 1024 2048 4096 8192] [--minutes 3]
[--seed 0] [--device cpu|cuda] [--no-ngram] [--short]. Prints one JSON line for each size (taken from the
beginning of the text) and vocabulary, with the model that the plan chose, and the bits per byte of an n-gram
model of order 5 with the same tokenizer. Give each run the same number of cores for its exclusive use.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from clearhead.runs.counting import count_text
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import documents
from clearhead.text.stories import stories

SIZES, VOCABULARIES = ["0.1MB", "1MB"], [1024, 2048, 4096, 8192]


def measure(
    training: Path, held_out: Path, vocab: int, minutes: float, seed: int, device: str | None, cache: Path
) -> dict[str, Any]:
    """Train a transformer on the first file, and evaluate it on the second."""
    began = time.perf_counter()
    request = TrainingRequest(
        minutes=minutes, tokenizer="bpe", vocab=vocab, seed=seed, device=device, validation=held_out
    )
    texts = list(documents([training]))
    run = Run(texts, request, cache=cache, began=began)
    for _ in run:
        pass
    seconds = time.perf_counter() - began
    config = run.model.transformer().config
    return {
        "bench": "vocabulary",
        "bytes": training.stat().st_size,
        "vocab": vocab,
        "minutes": minutes,
        "seed": seed,
        "seconds": round(seconds, 1),
        "bits_per_byte": bits_per_byte(run.model, held_out),
        "model": f"{config.n_block}×{config.d_model}",
        "parameters": config.n_parameter,
        "steps": run.trainer.step,
        "tokens": len(run.tokens),
        "epochs": round(run.plan.epochs(len(run.tokens)), 2),
    }


def count(training: Path, held_out: Path, vocab: int, cache: Path) -> float:
    """The bits per byte of an n-gram model."""
    request = TrainingRequest(kind="ngram", vocab=vocab, tokenizer="bpe", validation=held_out)
    return bits_per_byte(count_text(list(documents([training])), request, cache).model, held_out)


def bits_per_byte(model: Any, text: Path) -> float:
    bits = model.evaluate(text).bits_per_byte
    assert bits is not None
    return round(bits, 4)


def split(text: bytes, folder: Path) -> tuple[Path, Path]:
    """Write the first nine tenths and the rest, divided at a line break, to two files."""
    end = text.index(b"\n", len(text) * 9 // 10) + 1
    training, held_out = folder / "training.txt", folder / "held-out.txt"
    training.write_bytes(text[:end])
    held_out.write_bytes(text[end:])
    return training, held_out


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare sizes of the BPE vocabulary.")
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--vocab", nargs="+", type=int, default=VOCABULARIES)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device")
    parser.add_argument("--ngram", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--short",
        action="store_true",
        help="Compare two vocabularies on a few stories, for about a second each.",
    )
    options = parser.parse_args()
    if options.short:
        options.sizes, options.vocab, options.minutes = ["0.02MB"], [300, 400], 0.02
        text = "\n".join(story.text for story in islice(stories(), 400)).encode()
    elif options.text is None:
        parser.error("expected a text")
    else:
        text = options.text.read_bytes()
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            beginning = text[: int(float(size.removesuffix("MB")) * 1e6)].decode(errors="ignore").encode()
            training, held_out = split(beginning, Path(folder))
            for vocab in options.vocab:
                cache = Path(folder) / "cache"
                result = measure(
                    training, held_out, vocab, options.minutes, options.seed, options.device, cache
                )
                if options.ngram:
                    result["bits_per_byte_5gram"] = count(training, held_out, vocab, cache)
                print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
