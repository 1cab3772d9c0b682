"""Speed and final loss of training. Prints one JSON line.

    python -m bench.train plays TEXT [--seeds 3]    loss after about one second on a GPU, and wall-clock time
    python -m bench.train best TEXT [--seeds 3]     lowest loss of a single model in two minutes on a GPU
    python -m bench.train minutes TEXT [--seeds 1]  loss after 180 seconds in total, with the automatic plan
    python -m bench.train plays-2 TEXT              lowest loss in 2 minutes in total on a GPU, teachers included
    python -m bench.train plays-10 TEXT             the same in 10 minutes
    python -m bench.train novel-2 TEXT              the same in 2 minutes, with the tokens that the plan chooses
    python -m bench.train plays-cores TEXT          the same in 30 minutes on two cores, in characters
    python -m bench.train novel-cores TEXT          the same in 30 minutes on two cores, with the plan's tokens
    python -m bench.train gpt2 [--batch 64]         tokens per second of GPT-2 124M, compared with transformers
    python -m bench.train loss [--batch 64]         milliseconds of GPT-2's loss: plain, compiled, and by the kernel
    python -m bench.train grow                      step time by length of the text and by context

In addition to the plan's loss, the five benchmarks of small texts print the losses of one model without teachers and
of nanoGPT's recipe in the same time (`single`, `classic`), each with three seeds, and `gain`: how much higher they
are, in nats per byte. The plays have one byte per character.

In the others, texts are tokenized into characters, and the last tenth is used for validation: every token once, in
disjoint windows of the context length, with the weights of the last step. Each run is a separate process, which
compiles only if the plan does, or with --compiled; the first run then starts with an empty compilation cache.
`wall_seconds` is the sum of these phases: `import_seconds`, from the start of the process until everything is imported;
`device_seconds`, initializing the device; `preparation_seconds`; `setup_seconds`, before the first step; `run_seconds`,
until the last one, including training and validation; and `exit_seconds`, from the result to the end of the process.
--short makes every benchmark small enough for a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch

from bench.peers import transformers_gpt2
from bench.small_texts import compare
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runtime.device import can_compile, has_fast_bfloat16, pick_device
from clearhead.text.batches import Batches
from clearhead.text.corpus import documents
from clearhead.text.tokens import Tokens
from clearhead.training.chunked_loss import LARGE, LossAndGradient, _ChunkedLoss, _loss_and_gradient
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

SIZES = {"blocks": 6, "heads": 6, "width": 384, "context": 256, "batch": 64}
BENCHMARKS: dict[str, dict[str, Any]] = {
    "plays": {**SIZES, "steps": 180, "dropout": 0.0, "learning_rate": 0.05},
    "best": {**SIZES, "steps": 2000, "learning_rate": 0.04},
    "minutes": {"minutes": 2.9, "context": 256},  # startup takes the rest of the 180 seconds
}
SMALL_TEXTS: dict[str, dict[str, Any]] = {
    "plays-2": {"minutes": 2, "tokenizer": "char"},
    "plays-10": {"minutes": 10, "tokenizer": "char"},
    "novel-2": {"minutes": 2},
    "plays-cores": {"minutes": 30, "tokenizer": "char", "device": "cpu"},
    "novel-cores": {"minutes": 30, "device": "cpu"},
}
CORES = 2
SHORT = {"blocks": 1, "heads": 1, "width": 32, "context": 256, "batch": 2, "steps": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("benchmark", choices=[*BENCHMARKS, *SMALL_TEXTS, "gpt2", "loss", "grow", "one"])
    parser.add_argument("text", nargs="?", help="a text file; for `one`, the settings as JSON")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--compiled", action="store_true", help="compile even if the plan would not")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    if args.benchmark == "one":
        print(json.dumps(train_one(json.loads(args.text))))
        return
    if args.benchmark == "gpt2":
        print(json.dumps(measure_gpt2(args.batch, args.short)))
        return
    if args.benchmark == "loss":
        print(json.dumps(measure_loss(args.batch, args.short)))
        return
    if args.benchmark == "grow":
        print(json.dumps(measure_growth(args.short)))
        return
    if args.benchmark in SMALL_TEXTS:
        figures = measure_small_text(args.benchmark, args.text, args.seeds or 3, args.short)
        print(json.dumps({"bench": args.benchmark, **figures}))
        return
    seeds = args.seeds or (1 if args.benchmark == "minutes" else 3)
    settings = dict(SHORT if args.short else BENCHMARKS[args.benchmark])
    if args.compiled:
        settings["compiled"] = True
    print(json.dumps({"bench": args.benchmark, **measure_runs(args.text, settings, seeds)}))


def measure_runs(text: str, settings: dict[str, Any], seeds: int) -> dict[str, Any]:
    """Run one process per seed, so that the time includes everything a user waits for."""
    runs = []
    with tempfile.TemporaryDirectory() as place:
        caches = {name: str(Path(place, name)) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        for seed in range(seeds):
            start = time.time()
            request = json.dumps({"text": text, "cache": place, "began": start, **settings, "seed": seed})
            done = subprocess.run(
                [sys.executable, "-m", "bench.train", "one", request],
                capture_output=True,
                text=True,
                env={**os.environ, **caches},
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            end, run = time.time(), json.loads(done.stdout.splitlines()[-1])
            times = {"exit_seconds": round(end - run.pop("ended"), 2), "wall_seconds": round(end - start, 2)}
            runs.append({**run, **times})
    losses = [run["loss"] for run in runs]
    return {"settings": settings, "mean_loss": round(mean(losses), 4), "runs": runs}


def measure_small_text(benchmark: str, text: str, seeds: int, short: bool) -> dict[str, Any]:
    """The plan's loss on a small text in a given time, compared with a single model and nanoGPT's recipe."""
    settings = dict(SMALL_TEXTS[benchmark])
    minutes = settings.pop("minutes")
    if short:
        settings |= {**SHORT, "context": 32, "teachers": 2}
    elif settings.get("device") == "cpu" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # training processes inherit it
    return compare(text, minutes, settings, range(1 if short else seeds))


def train_one(settings: dict[str, Any]) -> dict[str, Any]:
    """Do one training run. Return its loss and the seconds spent in each phase."""
    imports = time.time() - settings.pop("began")
    text, cache = settings.pop("text"), Path(settings.pop("cache"))
    start = time.perf_counter()
    torch.zeros((), device=pick_device(settings.get("device")))
    began = time.perf_counter()
    request = TrainingRequest(tokenizer="char", validation=0.1, **settings)
    run = Run(list(documents([text])), request, cache=cache)
    planned = time.perf_counter()
    run.trainer.set_up()
    ready = time.perf_counter()
    for progress in run:
        last = progress
    done = time.perf_counter()
    config = run.plan.config
    return {
        "loss": round(run.losses[-1], 4),
        "training_seconds": round(run.trained, 3),
        "steps": last.record.step,
        "tokens_per_second": round(last.record.tokens / run.trained),
        "import_seconds": round(imports, 2),
        "device_seconds": round(began - start, 2),
        "preparation_seconds": round(planned - began, 2),
        "setup_seconds": round(ready - planned, 2),
        "run_seconds": round(done - ready, 2),
        "validation_seconds": round(run.validating, 2),
        "parameters": config.n_parameter,
        "shape": [config.n_block, config.d_model, config.n_context, run.plan.recipe.batch_size],
        "bfloat16": run.plan.recipe.bfloat16,
        "compiled": run.plan.recipe.compiled,
        "regularization": [config.dropout, run.plan.recipe.weight_decay, run.plan.recipe.token_noise],
        "ended": time.time(),
    }


def measure_gpt2(batch: int, short: bool) -> dict[str, Any]:
    """Train at context 1024 with AdamW; if transformers is installed, do the same with it (fused AdamW)."""
    device = pick_device()
    sizes = {"n_block": 12, "n_head": 12, "d_model": 768, "n_context": 1024, "n_vocab": 50304}
    if short:
        batch, sizes = 2, {"n_block": 1, "n_head": 2, "d_model": 32, "n_context": 64, "n_vocab": 512}
    half, compiled = has_fast_bfloat16(device), can_compile(device) and not short
    ids = np.random.default_rng(0).integers(0, min(50257, sizes["n_vocab"]), 10**6)
    batches = Batches(Tokens.of(ids), sizes["n_context"], batch, seed=0)
    recipe = Recipe(
        steps=10**6,
        batch_size=batch,
        optimizer="adamw",
        learning_rate=6e-4,
        bfloat16=half,
        compiled=compiled,
    )
    trainer = Trainer(Transformer(preset("gpt2", **sizes)).to(device), batches, recipe)
    trainer.set_up()
    tokens_per_step = batch * sizes["n_context"]
    figures: dict[str, Any] = {"bench": "gpt2", "batch": batch, "device": str(device), "bfloat16": half}
    ours = tokens_per_step / _seconds(trainer.take_step, device, short)
    figures["tokens_per_second"] = round(ours)
    del trainer
    theirs = _transformers_step(batches, sizes, device, half, compiled)
    if theirs is not None:
        peer = tokens_per_step / _seconds(theirs, device, short)
        figures |= {"transformers": round(peer), "ratio": round(ours / peer, 2)}
    return figures


def measure_loss(batch: int, short: bool) -> dict[str, Any]:
    """Return the milliseconds of computing loss and gradients from the final vectors of a batch of GPT-2 124M, matrix
    products included, with all logits at once and in chunks of at most `LARGE`.
    """
    device = pick_device()
    n, C, V = (64, 32, 512) if short else (batch * 1024, 768, 50304)
    half = torch.bfloat16 if has_fast_bfloat16(device) else torch.float32
    final, table = torch.randn(n, C, device=device, dtype=half), torch.randn(V, C, device=device, dtype=half)
    final, table = final.requires_grad_(), table.mul_(0.05).requires_grad_()
    targets = torch.randint(V, (n,), device=device)
    weight = torch.ones((), device=device) / n
    ways: dict[str, LossAndGradient] = {"plain": _loss_and_gradient}
    if can_compile(device):
        from clearhead.training import loss_kernel  # imports Triton

        ways |= {"compiled": torch.compile(_loss_and_gradient, dynamic=False)}
        ways |= {"kernel": loss_kernel.loss_and_gradient}
    figures: dict[str, Any] = {"bench": "loss", "device": str(device), "positions": n}
    chunk = 2 ** (LARGE // V).bit_length() // 2
    for name, way in ways.items():
        for rows in sorted({chunk, n}) if name == "kernel" else (chunk,):

            def step(rows: int = rows, way: LossAndGradient = way) -> None:
                _ChunkedLoss.apply(final, table, targets, weight, rows, way).backward()  # type: ignore[no-untyped-call]
                final.grad = table.grad = None

            figures[f"{name}_{min(rows, n)}"] = round(1e3 * _seconds(step, device, short), 3)
    return figures


def _transformers_step(
    batches: Batches, sizes: dict[str, int], device: torch.device, half: bool, compiled: bool
) -> Callable[[], object] | None:
    model = transformers_gpt2(sizes)
    if model is None:
        return None
    model = model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=True)
    run = torch.compile(model) if compiled else model
    steps = iter(range(10**6))

    def step() -> None:
        inputs, targets = (torch.from_numpy(each).to(device) for each in batches.at(next(steps))[:2])
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            logits = run(input_ids=inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure_growth(short: bool) -> dict[str, Any]:
    """Return milliseconds per step for texts of 1 MB to 1 GB, and, with equal tokens per step, for longer contexts."""
    device = pick_device()
    texts = (10**6, 10**7) if short else (10**6, 10**7, 10**8, 10**9)
    contexts = (64, 128) if short else (256, 512, 1024, 2048, 4096)
    figures: dict[str, Any] = {"bench": "grow", "device": str(device)}
    with tempfile.TemporaryDirectory() as place:
        for length in texts:
            tokens = _long_text(Path(place), length)
            step = _growing_step(tokens, contexts[0], 2**14 // contexts[0], device, short)
            figures[f"text_{length}"] = round(1e3 * _seconds(step, device, short), 3)
        for context in contexts:
            step = _growing_step(tokens, context, 2**14 // context, device, short)
            figures[f"context_{context}"] = round(1e3 * _seconds(step, device, short), 3)
    return figures


def _long_text(place: Path, length: int) -> Tokens:
    """Return random byte tokens, memory-mapped from disk."""
    file = Path(place, f"{length}.npy")
    ids = np.lib.format.open_memmap(file, "w+", np.uint8, (length,))
    random = np.random.default_rng(0)
    for start in range(0, length, 10**7):
        ids[start : start + 10**7] = random.integers(0, 256, min(10**7, length - start), np.uint8)
    ids.flush()
    return Tokens.of(np.load(file, mmap_mode="r"))


def _growing_step(
    tokens: Tokens, context: int, rows: int, device: torch.device, short: bool
) -> Callable[[], object]:
    width = 32 if short else 384
    config = preset("modern", n_vocab=256, n_context=context, n_block=2, n_head=width // 32, d_model=width)
    rows = 2 if short else rows
    recipe = Recipe(steps=10**6, batch_size=rows, bfloat16=has_fast_bfloat16(device))
    trainer = Trainer(Transformer(config).to(device), Batches(tokens, context, rows, seed=0), recipe)
    trainer.set_up()
    return trainer.take_step


def _seconds(step: Callable[[], object], device: torch.device, short: bool) -> float:
    """Return the median seconds per step over several groups of steps, after a warmup."""

    def synchronize() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(1 if short else 5):
        step()
    seconds, count = [], 1 if short else 5
    for _ in range(3 if short else 7):
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        synchronize()
        seconds.append((time.perf_counter() - start) / count)
    return median(seconds)


if __name__ == "__main__":
    main()
