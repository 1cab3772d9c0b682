"""Compare the `fast` recipe with `classic` (nanoGPT's): same text, tokenizer, model, batch and time; several seeds.

Usage: python -m bench.recipes TEXT… [--minutes 0.5] [--seeds 3] [--megabytes N] [--classic-rate R]
[--one-thread] [--short]. Prints one JSON line; `improvement` is the validation loss of `classic` minus that
of `fast`, in nats. The two runs of a seed alternate about every second, each with its own clock, so that
other jobs on the machine slow both down equally. On a busy machine, --one-thread counts the CPU time of one thread
instead of wall-clock time; on an idle core, the two are the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import Document, documents
from clearhead.text.stories import stories
from clearhead.training.recipe import RECIPES

SLICE = 1.0  # seconds


def compare(
    texts: list[Document], minutes: float, seeds: int, classic_rate: float | None, cache: Path
) -> dict[str, Any]:
    """Train both recipes with the sizes that the plan chooses for `fast`."""
    tokenizer = Run(texts, TrainingRequest(steps=1, tokenizer="bpe"), cache=cache).tokenizer  # not timed
    planned = Run(texts, TrainingRequest(minutes=minutes, tokenizer="bpe"), cache=cache, tokenizer=tokenizer)
    config, batch = planned.model.transformer().config, planned.plan.recipe.batch_size
    sizes = TrainingRequest(
        minutes=minutes,
        blocks=config.n_block,
        heads=config.n_head,
        width=config.d_model,
        context=config.n_context,
        batch=batch,
        tokenizer="bpe",
    )
    results: dict[str, list[TimedRun]] = {name: [] for name in RECIPES}
    for seed in range(seeds):
        runs = []
        for name in RECIPES if seed % 2 == 0 else reversed(RECIPES):
            rate = classic_rate if name == "classic" else None
            request = replace(sizes, recipe=name, learning_rate=rate, seed=seed)
            runs.append(TimedRun(Run(texts, request, cache=cache, tokenizer=tokenizer)))
            results[name].append(runs[-1])
        alternate(runs)
    figures = {name: describe(runs) for name, runs in results.items()}
    return {
        "bench": "recipes",
        "minutes": minutes,
        "model": f"{config.n_block}×{config.d_model}, {config.n_parameter:,} parameters",
        "batch": f"{batch}×{config.n_context}",
        "vocab": config.n_vocab,
        "tokens": len(planned.tokens),
        **figures,
        "improvement": round(figures["classic"]["mean"] - figures["fast"]["mean"], 4),
    }


class TimedRun:
    """A run whose clock stops while another run trains."""

    def __init__(self, run: Run) -> None:
        self.run, self.steps, self.stopped = run, iter(run), time.perf_counter()
        self.seconds = 0.0
        self.done = False

    def train_slice(self) -> None:
        start = time.perf_counter()
        self.run.start += start - self.stopped
        while not self.done and time.perf_counter() - start < SLICE:
            progress = next(self.steps, None)
            self.done = progress is None
            self.seconds = progress.seconds if progress else self.seconds
        self.stopped = time.perf_counter()


def alternate(runs: list[TimedRun]) -> None:
    """Train all runs to completion."""
    while any(not run.done for run in runs):
        for run in runs:
            run.train_slice()


def describe(timed: list[TimedRun]) -> dict[str, Any]:
    runs = [each.run for each in timed]
    losses = [round(run.losses[-1], 4) for run in runs]
    recipe = runs[0].plan.recipe
    return {
        "mean": round(mean(losses), 4),
        "spread": round(stdev(losses), 4) if len(losses) > 1 else None,
        "losses": losses,
        "best": [round(min(run.losses), 4) for run in runs],
        "steps": [run.plan.recipe.steps for run in runs],
        "seconds": [round(each.seconds, 1) for each in timed],
        "rate": recipe.matrix_rate if recipe.optimizer == "muon" else recipe.learning_rate,
        "dropout": runs[0].plan.config.dropout,
    }


def beginning(texts: list[Document], megabytes: float) -> list[Document]:
    """Return roughly the first `megabytes` MB of the texts as one document."""
    pieces, left = [], megabytes * 1e6
    for piece in (piece for document in texts for piece in document.pieces()):
        pieces.append(piece)
        left -= len(piece.encode())
        if left <= 0:
            break
    return [Document.of("beginning", "".join(pieces))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="*")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, help="use only the beginning of the text")
    parser.add_argument(
        "--classic-rate", type=float, help="learning rate of `classic` (default: as published)"
    )
    parser.add_argument(
        "--one-thread",
        action="store_true",
        help="use one thread and measure its CPU time instead of wall-clock time, for use on a busy machine",
    )
    parser.add_argument(
        "--short", action="store_true", help="train for two seconds on a few stories with one seed"
    )
    args = parser.parse_args()
    if args.one_thread:
        torch.set_num_threads(1)
        time.perf_counter = time.thread_time
    if args.short:
        texts = [Document.of("stories", "\n".join(story.text for story in islice(stories(), 150)))]
        args.minutes, args.seeds = 2 / 60, 1
    else:
        texts = list(documents(args.text))
    if args.megabytes:
        texts = beginning(texts, args.megabytes)
    with tempfile.TemporaryDirectory() as cache:
        print(
            json.dumps(compare(texts, args.minutes, args.seeds, args.classic_rate, Path(cache))),
        )
