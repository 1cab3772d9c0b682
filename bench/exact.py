"""Check that an interrupted and resumed run produces the same files, byte for byte, as an uninterrupted one.

Usage: python -m bench.exact [--device cpu|cuda] [--nondeterministic] [--steps 40] [--width 64] [--short].
Does the same run twice without interruption, then once with interruptions: right after a checkpoint,
between two checkpoints, several times within an epoch, and around the ends of epochs. Every leg runs in its
own process, except with --short. --nondeterministic does not request deterministic algorithms, which shows
their effect on CUDA. Prints one JSON line: `repeated_equal` and `resumed_equal` are true if every file of
the run folder, including metrics and weights, is identical; `different` lists the files that are not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

WEIGHTS, METRICS = "model.safetensors", "metrics.jsonl"
CHECKPOINT_EVERY = 4
STORIES = 20  # about ten steps per epoch


def train_leg(folder: Path, settings: dict[str, Any], stop_after: int | None, device: str | None) -> None:
    """Start or resume the run. At step `stop_after`, leave it as a crash would."""
    from clearhead.runs.request import TrainingRequest
    from clearhead.runs.saved_run import SavedRun
    from clearhead.text.batches import Batches
    from clearhead.text.corpus import Document
    from clearhead.text.stories import stories

    text = "\n".join(story.text for story in islice(stories(), STORIES))
    request = TrainingRequest(**settings, device=device)
    kept = SavedRun.open(
        folder / "run",
        [Document.of("stories", text)],
        request,
        resume=True,
        cache=folder / "cache",
        checkpoint_every=CHECKPOINT_EVERY,
    )
    assert kept is not None
    with kept:
        run = kept.run
        for progress in kept:
            if progress.record.step == stop_after:
                return
        run.model.save(kept.folder.path, overwrite=True)
        kept.finish()
    batches = run.trainer.batches
    assert isinstance(batches, Batches)
    windows, rows = batches.windows, run.plan.recipe.batch_size
    about = {"epoch": windows / rows, "bfloat16": run.plan.recipe.bfloat16, "device": str(run.device)}
    (folder / "about.json").write_text(json.dumps(about))


def train(
    folder: Path, settings: dict[str, Any], interruptions: list[int], device: str | None, in_process: bool
) -> dict[str, bytes]:
    """Train with interruptions and return all files of the finished run folder."""
    folder.mkdir()
    for stop_after in [*interruptions, None]:
        leg = (folder, settings, stop_after, device)
        if in_process:
            train_leg(*leg)
            continue
        process = multiprocessing.get_context("spawn").Process(target=train_leg, args=leg)
        process.start()
        process.join()
        assert process.exitcode == 0, f"the leg up to step {stop_after} exited with code {process.exitcode}"
    run = folder / "run"
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def compare(
    steps: int, width: int, device: str | None, deterministic: bool, in_process: bool, place: Path
) -> dict[str, Any]:
    began = time.perf_counter()
    settings = {
        "steps": steps,
        "blocks": 2,
        "width": width,
        "heads": max(1, width // 32),
        "context": 64,
        "batch": 8,
        "dropout": 0.2,
        "tokenizer": "char",
        "deterministic": deterministic,
    }
    reference = train(place / "reference", settings, [], device, in_process)
    about = json.loads((place / "reference" / "about.json").read_text())
    repeated = train(place / "repeated", settings, [], device, in_process)
    end = round(about["epoch"])
    # Interrupt around two checkpoints in the first epoch, then at points where resuming repeats the ends of two
    # epochs.
    interruptions = sorted({2, 4, 6, end + 2, 2 * end + 1, steps - 1} & set(range(1, steps)))
    resumed = train(place / "resumed", settings, interruptions, device, in_process)
    repeated_diff, resumed_diff = differing_files(reference, repeated), differing_files(reference, resumed)
    return {
        "bench": "exact",
        **about,
        "deterministic": deterministic,
        "steps": steps,
        "epochs": round(steps / about["epoch"], 2),
        "interrupted_after": interruptions,
        "repeated_equal": not repeated_diff,
        "resumed_equal": not resumed_diff,
        "metrics_equal": METRICS not in resumed_diff,
        "weights_equal": WEIGHTS not in resumed_diff,
        "different": sorted({*repeated_diff, *resumed_diff}),
        "weights_sha256": [
            hashlib.sha256(files[WEIGHTS]).hexdigest()[:16] for files in (reference, repeated, resumed)
        ],
        "first_differing_step": [first_differing_step(reference, other) for other in (repeated, resumed)],
        "seconds": round(time.perf_counter() - began, 1),
    }


def differing_files(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def first_differing_step(one: dict[str, bytes], other: dict[str, bytes]) -> int | None:
    """Return the first step whose metrics differ, or None."""
    lines = zip(one[METRICS].splitlines(), other[METRICS].splitlines(), strict=False)
    return next((number for number, (a, b) in enumerate(lines, 1) if a != b), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument(
        "--nondeterministic", action="store_true", help="do not request deterministic algorithms"
    )
    parser.add_argument(
        "--short", action="store_true", help="train a narrow model for a few steps, in one process"
    )
    args = parser.parse_args()
    if args.short:
        args.steps, args.width = 15, 32
    with tempfile.TemporaryDirectory(prefix="clearhead-exact-") as place:
        figures = compare(
            args.steps,
            args.width,
            args.device,
            not args.nondeterministic,
            args.short,
            Path(place),
        )
    print(json.dumps(figures))
