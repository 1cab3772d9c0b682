"""Train the built-in model `stories` and write it to the package: the model and a few snapshots, in float16.

Usage: python -m tools.train_stories [--steps 25000 | --minutes 3] [--device cuda] [--out FOLDER]. Prints one JSON
line: the model's loss on held-out stories, its size, the best head for each role, and three samples.

The model is trained on generated text only (`stories_corpus.py`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.files import hash_file, read_sealed, seal, write_json, write_text
from clearhead.formats import folder as model_folder
from clearhead.formats.builtin import place
from clearhead.formats.opening import SNAPSHOTS
from clearhead.labs.heads import heads
from clearhead.language_model import LanguageModel, load
from clearhead.runs.preparation import PreparedText
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_folder import RunFolder
from clearhead.runs.run_metrics import METRICS, read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.teacher_folders import RUN
from clearhead.text.corpus import Document, measure
from clearhead.text.stories import BOYS, GIRLS, parses, sentences
from clearhead.text.token_cache import tokenize
from tools.stories_corpus import VALIDATION_STORIES, Corpus, make_corpus

LARGEST = 10_000_000  # bytes in the folder
MOST_METRICS = 600  # steps whose metrics are kept
SNAPSHOT_SHARES = (1 / 250, 1 / 40, 1 / 8)  # fractions of the steps


def train(corpus: Corpus, request: TrainingRequest, folder: Path, cache: Path, command: list[str]) -> Run:
    """Train in a run folder, with snapshots."""
    sha256, _ = measure(corpus.training)
    tokens = tokenize(corpus.training, corpus.tokenizer, cache, text_sha256=sha256)
    validation = tokenize(corpus.validation, corpus.tokenizer, cache).part(1)
    text = PreparedText(sha256, 1.0, corpus.tokenizer, tokens, validation)
    run_folder = RunFolder(folder)
    run = Run(corpus.training, request, text=text)
    run_folder.begin(run, command)
    with SavedRun(run_folder, run, command) as saved:
        for progress in saved:
            step = progress.record.step
            if step in {max(1, round(share * progress.steps)) for share in SNAPSHOT_SHARES}:
                run_folder.save_snapshot(run.model, step)
            if progress.validation is not None:
                print(
                    f"step {step} of {progress.steps}: validation loss {progress.validation:.4f}",
                    file=sys.stderr,
                )
        run.model.save(folder, overwrite=True)
        saved.finish()
    return run


def pack(run_folder: Path, out: Path) -> int:
    """Write the run as package data, in float16; return its size in bytes."""
    staged = out.with_name(f".{out.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    for source in [run_folder, *sorted((run_folder / SNAPSHOTS).glob("step-*"))]:
        saved = model_folder.load(source)
        saved.network.half()
        model_folder.save(staged / source.relative_to(run_folder), saved)
    records = read_metrics(run_folder)
    every = -(-len(records) // MOST_METRICS)
    kept = [
        each for each in records if each["step"] % every == 0 or "validation" in each or each["step"] == 1
    ]
    write_text(staged / METRICS, "".join(json.dumps(_rounded(each)) + "\n" for each in kept))
    settings = read_sealed(run_folder / RUN) | {"metrics_sha256": hash_file(staged / METRICS)}
    write_json(staged / RUN, seal(settings))
    size = sum(path.stat().st_size for path in staged.rglob("*") if path.is_file())
    if size > LARGEST:
        raise SystemExit(f"{staged} has {size} bytes, expected at most {LARGEST}: choose a smaller width")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)
    return size


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in record.items()}


def describe(model: LanguageModel, validation: list[Document], samples: int = 40) -> dict[str, Any]:
    """The model's quality: loss, fluency, roles of its heads, samples."""
    evaluation = evaluate(model, validation)
    scores = heads(model)
    best = {kind: scores.best(kind) for kind in scores.kinds}
    stories = [str(text).strip() for text in model.generate(tokens=120, samples=samples, seed=1)]
    return {
        **evaluation,
        **measure_fluency(stories),
        "heads": {
            kind: {
                "block": block,
                "head": head,
                "score": round(score, 3),
                "chance": round(scores.chance[kind], 3),
            }
            for kind, (block, head, score) in best.items()
        },
        "samples": stories[:3],
    }


def evaluate(model: LanguageModel, texts: list[Document]) -> dict[str, float | None]:
    found = model.evaluate(texts, batch_size=64)
    bits = found.bits_per_byte
    return {
        "validation_loss": round(found.loss, 4),
        "bits_per_byte": None if bits is None else round(bits, 4),
    }


def measure_fluency(stories: Sequence[str]) -> dict[str, float]:
    """The share of sentences that the grammar can generate, and of stories that name one or two children."""
    lines = [sentence for text in stories for sentence in sentences(text)]
    children = [set(re.findall(r"[A-Z][a-z]+", text)) & {*GIRLS, *BOYS} for text in stories]
    return {
        "parsed": round(sum(map(parses, lines)) / max(1, len(lines)), 3),
        "same_names": round(sum(1 <= len(names) <= 2 for names in children) / max(1, len(children)), 3),
    }


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    time = parser.add_mutually_exclusive_group()
    time.add_argument("--steps", type=int, help="training steps (default: 25000)")
    time.add_argument("--minutes", type=float, help="training time instead of steps")
    parser.add_argument("--device", help="cpu or cuda (default: the best available)")
    parser.add_argument("--out", type=Path, default=place("stories"), help="folder to write or replace")
    parser.add_argument("--stories", type=int, default=400_000, help="stories to train on")
    parser.add_argument(
        "--validation", type=int, default=VALIDATION_STORIES, help="held-out stories for the validation loss"
    )
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--context", type=int, default=128, help="tokens; the longest story has about 100")
    parser.add_argument("--batch", type=int, default=64, help="windows per step")
    parser.add_argument("--seed", type=int, default=0, help="training seed")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    given = options(arguments)
    steps = 25000 if given.steps is None and given.minutes is None else given.steps
    sizes = {name: getattr(given, name) for name in ("blocks", "heads", "width", "context", "batch")}
    request = TrainingRequest(
        minutes=given.minutes,
        steps=steps,
        preset="lecture",
        tokenizer="word",
        seed=given.seed,
        device=given.device,
        **sizes,
    )
    corpus = make_corpus(given.stories, validation=given.validation)
    time = f"--minutes {given.minutes:g}" if steps is None else f"--steps {steps}"
    command = ["python", "-m", "tools.train_stories", *time.split()]
    with tempfile.TemporaryDirectory(prefix="stories-") as temporary:
        run = train(corpus, request, Path(temporary, "run"), Path(temporary, "tokens"), command)
        size = pack(Path(temporary, "run"), given.out)
    model = load(given.out, "cpu")  # in float32, as users load it
    return {
        "model": "stories",
        "parameters": model.config.n_parameter,
        "tokens_in_vocabulary": model.tokenizer.n_vocab,
        "bytes": size,
        "steps": run.trainer.step,
        "seconds": round(run.seconds, 1),
        **describe(model, corpus.validation),
    }


if __name__ == "__main__":
    print(json.dumps(main()))
