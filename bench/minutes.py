"""Check that training with a time budget takes that time, for short and long texts and budgets.

Usage: python -m bench.minutes TEXT… [--minutes 0.5 2 5] [--sizes 10kB 1MB 70MB] [--device cpu|cuda] [--from
MODEL] [--one-thread] [--short]. Prints one JSON line for each size (taken from the beginning of the text)
and each number of minutes. Each run is a separate process that starts with an empty token cache and saves to a run
folder. `seconds` is the time from before torch is imported until the model is saved; `overrun` is the fraction
by which it exceeds `requested_seconds` (negative if it is shorter); `process_seconds` is the lifetime of
the process. `phases` gives the seconds for imports, reading, training the tokenizer and tokenizing (`text`),
for timing the machine (`plan`), and so on. On a busy machine, --one-thread counts the CPU time of the
process instead of wall-clock time; on an idle core, the two are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import groupby, islice
from pathlib import Path
from typing import Any

MINUTES, SIZES = [0.5, 2.0, 5.0], ["10kB", "1MB", "70MB"]
THREADS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS")
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6}


def train_one(
    text: Path, folder: Path, minutes: float, device: str | None, start: str | None
) -> dict[str, Any]:
    """Train as `clearhead train TEXT --minutes M` does, with a clock that starts before the imports."""
    began = time.perf_counter()
    from clearhead.runs.request import TrainingRequest
    from clearhead.runs.saved_run import SavedRun
    from clearhead.runs.training import save_somewhere
    from clearhead.text.corpus import documents

    request = TrainingRequest(minutes=minutes, device=device, start=start)
    texts = list(documents([text]))
    kept = SavedRun.open(folder / "run", texts, request, cache=folder / "cache", began=began)
    assert kept is not None
    with kept:
        run, steps = kept.run, []
        opened = time.perf_counter()
        for progress in kept:
            steps.append(progress.steps)
        trained = time.perf_counter()
        _, refused = save_somewhere(run.model, kept.folder.path)
        assert refused is None, refused
        kept.finish()
    ended = time.perf_counter()
    seconds, requested, config = ended - began, 60 * minutes, run.plan.config
    return {
        "bench": "minutes",
        "bytes": text.stat().st_size,
        "requested_seconds": requested,
        "seconds": round(seconds, 2),
        "overrun": round(seconds / requested - 1, 4),
        "phases": {
            "text": round(run.prepared, 2),
            "plan": round(run.planned - run.prepared, 2),
            "steps": round(run.trained, 2),
            "validation": round(run.validating, 2),
            "saving": round(ended - trained, 2),
            "other": round(trained - opened - run.trained - run.validating, 2),
        },
        "share": run.plan.share,
        "model": f"{config.n_block}×{config.d_model}, {config.n_parameter:,} parameters",
        "batch": f"{run.plan.recipe.batch_size}×{run.plan.context}",
        "vocab": config.n_vocab,
        "tokens": len(run.tokens),
        "epochs": round(run.plan.epochs(len(run.tokens)), 2),
        "steps": run.trainer.step,
        "steps_planned": [planned for planned, _ in groupby(steps)],
        "validation_tokens": len(run.validation),
        "loss": round(run.losses[-1], 4),
        "bfloat16": run.plan.recipe.bfloat16,
        "device": str(run.device),
    }


def run_one(text: Path, minutes: float, options: list[str], one_thread: bool) -> dict[str, Any]:
    """Run `train_one` in a separate process."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.minutes", "--one", str(text), "--minutes", str(minutes), *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **(dict.fromkeys(THREADS, "1") if one_thread else {})},
    )
    return {**json.loads(done.stdout), "process_seconds": round(time.perf_counter() - began, 2)}


def read_text(sources: list[str], short: bool) -> bytes:
    if short:
        from clearhead.text.stories import stories

        return "\n".join(story.text for story in islice(stories(), 150)).encode()
    from clearhead.text.corpus import documents

    return "".join(piece for document in documents(sources) for piece in document.pieces()).encode()


def to_bytes(size: str) -> int:
    """Parse a size such as 10kB into bytes."""
    match = re.fullmatch(r"([\d.]+)(B|kB|MB)", size)
    if not match:
        raise argparse.ArgumentTypeError(f"invalid size {size!r}: expected a size such as 10kB or 1MB")
    return int(float(match[1]) * UNITS[match[2]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="*")
    parser.add_argument("--minutes", type=float, nargs="+", default=MINUTES)
    parser.add_argument("--sizes", type=to_bytes, nargs="+", default=list(map(to_bytes, SIZES)))
    parser.add_argument("--device")
    parser.add_argument("--from", dest="start", help="model to fine-tune")
    parser.add_argument(
        "--one-thread",
        action="store_true",
        help="use one thread and measure its CPU time instead of wall-clock time, for use on a busy machine",
    )
    parser.add_argument("--short", action="store_true", help="train for six seconds on a few stories")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    options = [*(("--device", args.device) if args.device else ())]
    options += [*(("--from", args.start) if args.start else ()), *(["--one-thread"] * args.one_thread)]
    with tempfile.TemporaryDirectory(prefix="clearhead-minutes-") as place:
        folder = Path(place)
        if args.one:
            if args.one_thread:
                time.perf_counter = time.process_time
            print(json.dumps(train_one(args.one, folder, args.minutes[0], args.device, args.start)))
            sys.exit()
        if args.short:
            args.minutes, args.sizes = [0.1], [30_000]
        text = read_text(args.text, args.short)
        for size in args.sizes:
            path = folder / "text.txt"
            path.write_bytes(text[:size].decode(errors="ignore").encode())
            for minutes in args.minutes:
                print(json.dumps(run_one(path, minutes, options, args.one_thread)), flush=True)
