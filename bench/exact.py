"""Whether a run that is broken off and gone on with ends with the same bytes as one that was not.

Usage: python -m bench.exact [--device cpu|cuda] [--free] [--steps 40] [--width 64] [--short].
Trains the same run twice without a break, then with a break after each of several steps: right after a
checkpoint, between two of them, several in one epoch of the text, and around the ends of epochs. Every leg
is a process of its own, but with --short. With --free, `deterministic` is not asked for, which on CUDA shows
what it is for. Prints one JSON line: `repeated_equal` and `resumed_equal` are true where every file of the
folder is the same, metrics, weights and all, and `different` names those that are not.
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
STORIES = 20  # an epoch of them is about ten steps


def train_leg(folder: Path, settings: dict[str, Any], stop_after: int | None, device: str | None) -> None:
    """Begin the run or go on with it, to its end or to a step, where it is left as a crash leaves it."""
    from clearhead.runs.kept_run import KeptRun
    from clearhead.runs.request import TrainingRequest
    from clearhead.text.corpus import Document
    from clearhead.text.stories import stories

    text = "\n".join(story.text for story in islice(stories(), STORIES))
    request = TrainingRequest(**settings, device=device)
    kept = KeptRun.open(
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
    windows, rows = run.trainer.batches.windows, run.plan.recipe.batch_size
    about = {"epoch": windows / rows, "bfloat16": run.plan.recipe.bfloat16, "device": str(run.device)}
    (folder / "about.json").write_text(json.dumps(about))


def train(
    folder: Path, settings: dict[str, Any], breaks: list[int], device: str | None, here: bool
) -> dict[str, bytes]:
    """All files of the finished run's folder."""
    folder.mkdir()
    for stop_after in [*breaks, None]:
        leg = (folder, settings, stop_after, device)
        if here:
            train_leg(*leg)
            continue
        process = multiprocessing.get_context("spawn").Process(target=train_leg, args=leg)
        process.start()
        process.join()
        assert process.exitcode == 0, f"the leg up to step {stop_after} ended with {process.exitcode}"
    run = folder / "run"
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def compare(
    steps: int, width: int, device: str | None, deterministic: bool, here: bool, place: Path
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
    whole = train(place / "whole", settings, [], device, here)
    about = json.loads((place / "whole" / "about.json").read_text())
    again = train(place / "again", settings, [], device, here)
    end = round(about["epoch"])
    # Before a checkpoint and after two, in one epoch; so that its end, and the next one's, is gone over anew.
    breaks = sorted({2, 4, 6, end + 2, 2 * end + 1, steps - 1} & set(range(1, steps)))
    broken = train(place / "broken", settings, breaks, device, here)
    again_differs, broken_differs = differing(whole, again), differing(whole, broken)
    return {
        "bench": "exact",
        **about,
        "deterministic": deterministic,
        "steps": steps,
        "epochs": round(steps / about["epoch"], 2),
        "broken_after": breaks,
        "repeated_equal": not again_differs,
        "resumed_equal": not broken_differs,
        "metrics_equal": METRICS not in broken_differs,
        "weights_equal": WEIGHTS not in broken_differs,
        "different": sorted({*again_differs, *broken_differs}),
        "weights_sha256": [hashlib.sha256(each[WEIGHTS]).hexdigest()[:16] for each in (whole, again, broken)],
        "first_step_apart": [first_apart(whole, other) for other in (again, broken)],
        "seconds": round(time.perf_counter() - began, 1),
    }


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def first_apart(one: dict[str, bytes], other: dict[str, bytes]) -> int | None:
    """The first step whose metrics are not the same."""
    lines = zip(one[METRICS].splitlines(), other[METRICS].splitlines(), strict=False)
    return next((number for number, (a, b) in enumerate(lines, 1) if a != b), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--free", action="store_true", help="without asking for deterministic algorithms")
    parser.add_argument("--short", action="store_true", help="few steps of a narrow model, in one process")
    given = parser.parse_args()
    if given.short:
        given.steps, given.width = 15, 32
    with tempfile.TemporaryDirectory(prefix="clearhead-exact-") as place:
        asked = given.steps, given.width, given.device, not given.free, given.short
        print(json.dumps(compare(*asked, Path(place))))
